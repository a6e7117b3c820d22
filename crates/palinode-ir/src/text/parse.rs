//! Text -> program.
//!
//! Headers are read first, so that calls and tangent rules may point forwards; then bodies, in which every
//! value gets the next number. A mistake ends its function, the others are read on, so that several mistakes
//! are reported at once. What the parser does not look at (types of blocks, of tangent rules, names used
//! twice ...) the verifier does, at the end.
//!
//! Limits: blocks nest at most 128 deep, arrays have at most 255 axes.

use std::collections::HashMap;
use std::sync::Arc;

use super::ParseError;
use super::lex::{Kind, Token, lex};
use super::name::{decode, name_in};
use super::operation::{Form, Operation, literal, operation};
use crate::op::{Axis, FuncId, Keep, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Elem, Span, Type};
use crate::typing::result_types;
use crate::verify::verify;

/// How deep blocks may nest: a text from elsewhere must not overflow the stack.
const MAX_DEPTH: usize = 128;

/// The program that a text is the form of, verified.
///
/// # Errors
/// Every mistake found, in the order of the text; those of the verifier (if there are no others) last.
pub fn parse(text: &str) -> Result<Program, Vec<ParseError>> {
    let (tokens, mut errors) = lex(text);
    let headers = headers(&tokens, &mut errors);
    let mut functions = Vec::with_capacity(headers.len());
    let names: HashMap<String, FuncId> =
        headers.iter().enumerate().map(|(at, header)| (header.name.clone(), FuncId(at as u32))).collect();
    for header in &headers {
        let mut parser = Parser::new(&tokens[header.body..], &headers, &names);
        match parser.function(header) {
            Ok(function) => functions.push(function),
            Err(error) => errors.push(error),
        }
    }
    let mut entries =
        headers.iter().enumerate().filter_map(|(at, header)| Some((at, header.outputs.as_ref()?)));
    let whole = |message: &str| ParseError { line: 0, column: 0, message: message.to_string() };
    let entry = entries.next();
    if entry.is_none() && errors.is_empty() {
        errors.push(whole("no function is marked `entry fn`"));
    }
    if entries.next().is_some() {
        errors.push(whole("two functions are marked `entry fn`"));
    }
    let (Some((at, outputs)), true) = (entry, errors.is_empty()) else {
        errors.sort_by_key(|error| (error.line, error.column));
        return Err(errors);
    };
    let outputs = outputs.iter().map(|name| Arc::from(name.as_str())).collect();
    let program = Program { functions, entry: FuncId(at as u32), outputs };
    match verify(&program) {
        Ok(()) => Ok(program),
        Err(invalid) => Err(invalid.problems.iter().map(|problem| whole(problem)).collect()),
    }
}

/// What stands before the body of a function.
struct Header<'a> {
    name: String,
    params: Vec<(&'a str, Type)>,
    results: Vec<Type>,
    /// Of the entry.
    outputs: Option<Vec<String>>,
    tangent: Option<Token<'a>>,
    /// The token after the opening brace.
    body: usize,
}

fn headers<'a>(tokens: &[Token<'a>], errors: &mut Vec<ParseError>) -> Vec<Header<'a>> {
    let (none, mut headers) = (HashMap::new(), Vec::new());
    let mut at = 0;
    while tokens[at].kind != Kind::End {
        let mut parser = Parser::new(&tokens[at..], &[], &none);
        match parser.header() {
            Ok(mut header) => {
                at += parser.at;
                header.body = at;
                headers.push(header);
                at = end_of_body(tokens, at);
            }
            Err(error) => {
                errors.push(error);
                // Nothing is known of what follows; take up again at the next function.
                at += parser.at.max(1);
                while !matches!(tokens[at.min(tokens.len() - 1)].kind, Kind::Word("fn" | "entry") | Kind::End)
                {
                    at += 1;
                }
                at = at.min(tokens.len() - 1);
            }
        }
    }
    headers
}

/// One past the brace that closes a body which starts at `at`.
fn end_of_body(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut depth = 1;
    while depth > 0 && tokens[at].kind != Kind::End {
        match tokens[at].kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') => depth -= 1,
            Kind::Mark(_) | Kind::Word(_) | Kind::Arrow | Kind::End => {}
        }
        at += 1;
    }
    at
}

type Parsed<T> = Result<T, ParseError>;

/// An operation, its operands, its blocks and the types of its results.
type Applied = (Op, Vec<Value>, Vec<Block>, Vec<Type>);

struct Parser<'t, 'a> {
    /// What is left to read, from [`Parser::at`] on; the last one is the end.
    tokens: &'t [Token<'a>],
    at: usize,
    headers: &'t [Header<'a>],
    names: &'t HashMap<String, FuncId>,
    function: Function,
    values: HashMap<&'a str, Value>,
    depth: usize,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn new(
        tokens: &'t [Token<'a>],
        headers: &'t [Header<'a>],
        names: &'t HashMap<String, FuncId>,
    ) -> Parser<'t, 'a> {
        let function = Function::new("");
        Parser { tokens, at: 0, headers, names, function, values: HashMap::new(), depth: 0 }
    }

    // --- tokens ---

    fn here(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn ahead(&self, distance: usize) -> Kind<'a> {
        self.tokens[(self.at + distance).min(self.tokens.len() - 1)].kind
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.here();
        self.at += 1;
        token
    }

    fn error<T>(&self, at: Token<'_>, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError { line: at.line, column: at.column, message: message.into() })
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let found = match self.here().kind {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::Arrow => "`->`".to_string(),
            Kind::End => "the end".to_string(),
        };
        self.error(self.here(), format!("expected {what}, found {found}"))
    }

    fn eat(&mut self, kind: Kind<'_>) -> bool {
        let is = self.here().kind == kind;
        self.at += usize::from(is);
        is
    }

    fn mark(&mut self, mark: char) -> Parsed<()> {
        if self.eat(Kind::Mark(mark)) { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.eat(Kind::Word(word)) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        match self.here().kind {
            Kind::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            Kind::Mark(_) | Kind::Arrow | Kind::End => self.expected(what),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<String> {
        let at = self.here();
        let word = self.word(what)?;
        match decode(word) {
            Some(name) => Ok(name),
            None => self.error(at, format!("an escape of `{word}` is no character")),
        }
    }

    /// Items between marks, with commas between them.
    fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.mark(open)?;
        let mut items = Vec::new();
        if self.eat(Kind::Mark(close)) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat(Kind::Mark(',')) {
                self.mark(close)?;
                return Ok(items);
            }
        }
    }

    // --- values and types ---

    fn ty(&mut self) -> Parsed<Type> {
        let at = self.here();
        let word = self.word("a type")?;
        let Some(elem) = Elem::ALL.into_iter().find(|elem| elem.name() == word) else {
            return self.error(at, format!("`{word}` is not a type: f64, f32, int or bool"));
        };
        if self.here().kind != Kind::Mark('[') {
            return Ok(Type::scalar(elem));
        }
        let axes = self.list('[', ']', |this| this.keyword("_"))?;
        match u8::try_from(axes.len()) {
            Ok(rank) => Ok(Type::array(elem, rank)),
            Err(_) => self.error(at, "an array has at most 255 axes"),
        }
    }

    fn typed(&mut self) -> Parsed<(&'a str, Type)> {
        let label = self.word("a value")?;
        self.mark(':')?;
        Ok((label, self.ty()?))
    }

    fn define(&mut self, label: &'a str, ty: Type) -> Parsed<Value> {
        let at = self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)];
        let name = match name_in(label).map(decode) {
            None => None,
            Some(Some(name)) => Some(name.into()),
            Some(None) => return self.error(at, format!("an escape of `{label}` is no character")),
        };
        let value = self.function.fresh(ty, name);
        match self.values.insert(label, value) {
            None => Ok(value),
            Some(_) => self.error(at, format!("`{label}` is defined twice")),
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        let at = self.here();
        let label = self.word("a value")?;
        match self.values.get(label) {
            Some(&value) => Ok(value),
            None => self.error(at, format!("`{label}` is not defined before this use")),
        }
    }

    /// Values with commas between them, at least one.
    fn operands(&mut self) -> Parsed<Vec<Value>> {
        let mut values = vec![self.value()?];
        while self.eat(Kind::Mark(',')) {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&value| self.function.ty(value)).collect()
    }

    fn callee(&mut self) -> Parsed<FuncId> {
        let at = self.here();
        let name = self.name("a function")?;
        match self.names.get(&name) {
            Some(&id) => Ok(id),
            None => self.error(at, format!("there is no function `{name}`")),
        }
    }

    // --- functions ---

    fn header(&mut self) -> Parsed<Header<'a>> {
        let is_entry = self.eat(Kind::Word("entry"));
        self.keyword("fn")?;
        let name = self.name("the name of a function")?;
        let params = self.list('(', ')', Self::typed)?;
        if !self.eat(Kind::Arrow) {
            return self.expected("`->`");
        }
        let results = self.list('(', ')', Self::ty)?;
        let outputs = if is_entry {
            self.keyword("outputs")?;
            Some(self.list('(', ')', |this| this.name("the name of an output"))?)
        } else {
            None
        };
        let tangent = if self.eat(Kind::Word("tangent")) { Some(self.next()) } else { None };
        self.mark('{')?;
        Ok(Header { name, params, results, outputs, tangent, body: 0 })
    }

    fn function(&mut self, header: &Header<'a>) -> Parsed<Function> {
        self.function.name = header.name.as_str().into();
        if let Some(token) = header.tangent {
            let mut parser = Parser::new(core::slice::from_ref(&token), self.headers, self.names);
            self.function.tangent_rule = Some(parser.callee()?);
        }
        let params: Parsed<Vec<Value>> =
            header.params.iter().map(|&(label, ty)| self.define(label, ty)).collect();
        let start = self.here();
        let mut body = self.block_after_brace()?;
        body.params = params?;
        if self.types(&body.results) != header.results {
            return self.error(start, format!("`{}` does not yield the types it announces", header.name));
        }
        self.function.body = body;
        Ok(core::mem::replace(&mut self.function, Function::new("")))
    }

    fn block(&mut self) -> Parsed<Block> {
        self.mark('{')?;
        if self.depth >= MAX_DEPTH {
            return self.error(self.here(), format!("blocks nest more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let block = self.block_after_brace();
        self.depth -= 1;
        block
    }

    fn block_after_brace(&mut self) -> Parsed<Block> {
        let mut block = Block::default();
        while !self.eat(Kind::Word("yield")) {
            let inst = self.inst()?;
            block.insts.push(inst);
        }
        if self.here().kind != Kind::Mark('}') {
            block.results = self.operands()?;
        }
        self.mark('}')?;
        Ok(block)
    }

    // --- instructions ---

    fn inst(&mut self) -> Parsed<Inst> {
        let mut labels = Vec::new();
        if matches!(self.ahead(1), Kind::Mark(',' | '=')) {
            labels.push(self.word("a value")?);
            while self.eat(Kind::Mark(',')) {
                labels.push(self.word("a value")?);
            }
            self.mark('=')?;
        }
        let start = self.here();
        let name = self.word("an operation or `yield`")?;
        let Some(operation) = operation(name) else {
            return self.error(start, format!("there is no operation `{name}`"));
        };
        let (op, args, blocks, types) = self.applied(start, &operation)?;
        if types.len() != labels.len() {
            let message = format!("`{name}` gives {} results, {} are named", types.len(), labels.len());
            return self.error(start, message);
        }
        let mut results = Vec::with_capacity(labels.len());
        for (label, ty) in labels.into_iter().zip(types) {
            results.push(self.define(label, ty)?);
        }
        Ok(Inst { op, args: args.into(), blocks, results: results.into(), span: Span::NONE })
    }

    /// What follows the name of an operation, and the types of its results.
    fn applied(&mut self, start: Token<'a>, operation: &Operation) -> Parsed<Applied> {
        let Operation { op, form } = operation;
        let (op, args) = match form {
            Form::Plain => (op.clone(), self.operands()?),
            Form::Const => {
                let at = self.here();
                match literal(&mut || self.next().kind) {
                    Ok(literal) => (Op::Const(literal), Vec::new()),
                    Err(message) => return self.error(at, message),
                }
            }
            Form::Number(_) | Form::Axis(_) | Form::Axes(_) | Form::Elem => {
                let attributes = self.list('<', '>', |this| this.word("a number or a type"))?;
                let Some(op) = operation.with(&attributes) else {
                    let message = format!("`{}` does not take <{}>", op.name(), attributes.join(","));
                    return self.error(start, message);
                };
                (op, self.operands()?)
            }
            Form::Read(make) => {
                let array = self.value()?;
                let (axes, places) = self.places()?;
                (make(axes), [&[array], &places[..]].concat())
            }
            Form::Update(make) => {
                let array = self.value()?;
                let (axes, places) = self.places()?;
                self.mark(',')?;
                let x = self.value()?;
                (make(axes), [&[array, x], &places[..]].concat())
            }
            Form::MatMul => {
                let a = self.value()?;
                let a_transposed = self.eat(Kind::Mark('\''));
                self.mark(',')?;
                let b = self.value()?;
                let b_transposed = self.eat(Kind::Mark('\''));
                let strong = matches!(op, Op::MatMul { strong: true, .. });
                (Op::MatMul { a_transposed, b_transposed, strong }, vec![a, b])
            }
            Form::Call => {
                let callee = self.callee()?;
                let args = self.list('(', ')', Self::value)?;
                let results = self.headers[callee.index()].results.clone();
                return Ok((Op::Call(callee), args, Vec::new(), results));
            }
            Form::For => return self.for_loop(),
            Form::Sweep => return self.sweep(start),
            Form::While => {
                let keep = self.keep()?;
                let (params, args) = self.carried()?;
                let types = self.types(&params);
                let head = Block { params, ..self.block()? };
                self.keyword("do")?;
                let params = self.list('(', ')', Self::typed)?;
                let params = self.define_all(params)?;
                let body = Block { params, ..self.block()? };
                return Ok((Op::While { keep }, args, vec![head, body], types));
            }
            Form::If => {
                let condition = self.value()?;
                let yes = self.block()?;
                self.keyword("else")?;
                let no = self.block()?;
                let types = self.types(&yes.results);
                return Ok((Op::If, vec![condition], vec![yes, no], types));
            }
            Form::Fused => {
                let (params, args) = self.carried()?;
                let block = Block { params, ..self.block()? };
                let rank = self.types(&args).iter().map(|ty| ty.rank).max().unwrap_or(0);
                let types = self.types(&block.results).iter().map(|ty| ty.with_rank(rank)).collect();
                return Ok((Op::Fused, args, vec![block], types));
            }
        };
        if args.len() > 256 && !matches!(op, Op::Concat(_) | Op::Push) {
            return self.error(start, "an operation takes at most 256 operands");
        }
        match result_types(&op, &self.types(&args)) {
            Ok(types) => Ok((op, args, Vec::new(), types)),
            Err(mismatch) => self.error(start, mismatch),
        }
    }

    /// `snapshots 3` or `bytes 65536`, if it is there.
    fn keep(&mut self) -> Parsed<Option<Keep>> {
        let make: fn(u64) -> Keep = match (self.here().kind, self.ahead(1)) {
            (Kind::Word("snapshots"), Kind::Word(_)) => Keep::Snapshots,
            (Kind::Word("bytes"), Kind::Word(_)) => Keep::Bytes,
            _ => return Ok(None),
        };
        // `snapshots in n` is a counter of that name.
        if self.ahead(1) == Kind::Word("in") {
            return Ok(None);
        }
        self.at += 1;
        let at = self.here();
        match self.word("a number")?.parse() {
            Ok(number) => Ok(Some(make(number))),
            Err(_) => self.error(at, "expected a whole number"),
        }
    }

    /// `snapshots 3 k in n (state) {...} back k (state) (cotangents) {...}`; with a turn
    /// `snapshots 3 k in n (state) {...} turn (state) (given) {...} back k (state) (cotangents) {...}`.
    fn sweep(&mut self, start: Token<'a>) -> Parsed<Applied> {
        let Some(keep) = self.keep()? else {
            return self.error(start, "a sweep says how much it may keep: `sweep snapshots 3 k in n ...`");
        };
        let k = self.word("the counter")?;
        let k = self.define(k, Type::INT)?;
        self.keyword("in")?;
        let n = self.value()?;
        let (state, initial) = self.carried()?;
        let advance = Block { params: [&[k], &state[..]].concat(), ..self.block()? };
        let mut turn = None;
        if self.here().kind == Kind::Word("turn") {
            self.at += 1;
            let state = self.list('(', ')', Self::typed)?;
            let state = self.define_all(state)?;
            let (given, values) = self.carried()?;
            let block = Block { params: [&state[..], &given[..]].concat(), ..self.block()? };
            turn = Some((block, values));
        }
        self.keyword("back")?;
        let k = self.word("the counter")?;
        let k = self.define(k, Type::INT)?;
        let state = self.list('(', ')', Self::typed)?;
        let state = self.define_all(state)?;
        let (cotangents, others) = match turn {
            None => self.carried()?,
            Some((_, ref values)) => {
                let cotangents = self.list('(', ')', Self::typed)?;
                (self.define_all(cotangents)?, values.clone())
            }
        };
        let types = self.types(turn.as_ref().map_or(&cotangents, |(turn, _)| &turn.results));
        let back = Block { params: [&[k], &state[..], &cotangents[..]].concat(), ..self.block()? };
        let args = [&[n], &initial[..], &others[..]].concat();
        let op = Op::Sweep { keep, turns: turn.is_some() };
        Ok((op, args, [advance, back].into_iter().chain(turn.map(|(turn, _)| turn)).collect(), types))
    }

    fn for_loop(&mut self) -> Parsed<Applied> {
        let keep = self.keep()?;
        let k = self.word("the counter")?;
        let k = self.define(k, Type::INT)?;
        self.keyword("in")?;
        let descending = self.here().kind == Kind::Word("down") && matches!(self.ahead(1), Kind::Word(_));
        self.at += usize::from(descending);
        let n = self.value()?;
        let (carried, initial) = self.carried()?;
        let types = self.types(&carried);
        let params = [&[k], &carried[..]].concat();
        let block = Block { params, ..self.block()? };
        let args = [&[n], &initial[..]].concat();
        Ok((Op::For { descending, keep }, args, vec![block], types))
    }

    /// `(param: type = operand, ...)`: the parameters and the operands.
    fn carried(&mut self) -> Parsed<(Vec<Value>, Vec<Value>)> {
        let all = self.list('(', ')', |this| {
            let typed = this.typed()?;
            this.mark('=')?;
            Ok((typed, this.value()?))
        })?;
        let (params, args): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        Ok((self.define_all(params)?, args))
    }

    fn define_all(&mut self, params: Vec<(&'a str, Type)>) -> Parsed<Vec<Value>> {
        params.into_iter().map(|(label, ty)| self.define(label, ty)).collect()
    }

    /// `[i, :, start:+length:step, @list]`: the axes and their operands.
    fn places(&mut self) -> Parsed<(Vec<Axis>, Vec<Value>)> {
        let start = self.here();
        let all = self.list('[', ']', |this| {
            if this.eat(Kind::Mark(':')) {
                return Ok((Axis::All, Vec::new()));
            }
            if this.eat(Kind::Mark('@')) {
                return Ok((Axis::List, vec![this.value()?]));
            }
            let first = this.value()?;
            if !this.eat(Kind::Mark(':')) {
                return Ok((Axis::At, vec![first]));
            }
            this.mark('+')?;
            let length = this.value()?;
            this.mark(':')?;
            Ok((Axis::Range, vec![first, length, this.value()?]))
        })?;
        if all.len() > 255 {
            return self.error(start, "an array has at most 255 axes");
        }
        let (axes, operands): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        Ok((axes, operands.concat()))
    }
}
