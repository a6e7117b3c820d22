//! The cheapest way to have values later: which to keep and which to compute again.
//!
//! Input: items, each with the price of keeping it, the work of computing it again (if that is possible) and
//! the items that this uses; and the items that are needed. Output: for each item whether it is kept,
//! computed again, or neither, so that everything needed is available and the sum of prices and work is
//! least. Of several such answers, the one that keeps what is nearest to the needs.
//!
//! This is a minimum cut. An item has two switches: whether it must be available, and whether it is computed
//! again. Three rules connect them: a needed item must be available; an item that must be available and is
//! not computed again is kept, at its price; the operands of what is computed again must be available. Each
//! rule is an edge from a switch that is on to one that is off, and the cut is found by Dinic's algorithm
//! (*Algorithm for solution of a problem of maximum flow*, 1970). Compilers that keep activations for
//! training cut in the same way, but do not count the work (Horace He, *min-cut rematerialization*, 2022).
//!
//! Invariant: the same answer on every machine; time is limited, and beyond the limit the answer is still
//! sound: every item is kept that cannot be computed from others that are available.

/// Something that may be kept or computed again.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The price of keeping it.
    pub(crate) keep: u64,
    /// The work of computing it again, if it can be.
    pub(crate) work: Option<u64>,
    /// The items that this uses; they come before this one.
    pub(crate) from: Vec<usize>,
}

/// What is done with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    NotNeeded,
    Kept,
    Again,
}

/// More than all prices together.
const INFINITE: u64 = u64::MAX / 4;
/// How often each edge is looked at, on average, before the search gives up.
const MOST_LOOKS: usize = 64;

/// Decides about all items.
pub(crate) fn cheapest(items: &[Item], needs: &[usize]) -> Vec<Fate> {
    let mut network = Network::new(2 + 2 * items.len());
    let (there, again) = (|at: usize| 2 + 2 * at, |at: usize| 3 + 2 * at);
    for &need in needs {
        network.edge(SOURCE, there(need), INFINITE);
    }
    for (at, item) in items.iter().enumerate() {
        match item.work {
            None => network.edge(there(at), SINK, item.keep),
            Some(work) => {
                network.edge(there(at), again(at), item.keep);
                network.edge(again(at), SINK, work);
                for &from in &item.from {
                    network.edge(again(at), there(from), INFINITE);
                }
            }
        }
    }
    if !network.saturate() {
        return simplest(items, needs);
    }
    let on = network.reached();
    let fate = |(at, item): (usize, &Item)| match (on[there(at)], item.work.is_some() && on[again(at)]) {
        (false, _) => Fate::NotNeeded,
        (true, false) => Fate::Kept,
        (true, true) => Fate::Again,
    };
    items.iter().enumerate().map(fate).collect()
}

/// Keeps what is needed, unless it can be made from what is kept.
fn simplest(items: &[Item], needs: &[usize]) -> Vec<Fate> {
    let mut fates = vec![Fate::NotNeeded; items.len()];
    let mut needed = vec![false; items.len()];
    needs.iter().for_each(|&need| needed[need] = true);
    for (at, item) in items.iter().enumerate().filter(|(at, _)| needed[*at]) {
        let is_there = item.from.iter().all(|&from| fates[from] != Fate::NotNeeded);
        fates[at] = if item.work.is_some() && is_there { Fate::Again } else { Fate::Kept };
    }
    fates
}

const SOURCE: usize = 0;
const SINK: usize = 1;
const NONE: u32 = u32::MAX;

struct Edge {
    to: u32,
    /// How much more may flow.
    left: u64,
    /// The next edge from the same node.
    next: u32,
}

/// A network; edge `e` and edge `e ^ 1` are one another's reverse.
struct Network {
    first: Vec<u32>,
    edges: Vec<Edge>,
}

impl Network {
    fn new(nodes: usize) -> Network {
        Network { first: vec![NONE; nodes], edges: Vec::new() }
    }

    fn edge(&mut self, from: usize, to: usize, most: u64) {
        for (from, to, left) in [(from, to, most), (to, from, 0)] {
            self.edges.push(Edge { to: to as u32, left, next: self.first[from] });
            self.first[from] = (self.edges.len() - 1) as u32;
        }
    }

    /// Lets as much flow as possible; returns whether it ended in time.
    fn saturate(&mut self) -> bool {
        let mut looks = MOST_LOOKS * self.edges.len().max(64);
        loop {
            let level = self.levels();
            if level[SINK] == NONE {
                return true;
            }
            let mut open = self.first.clone();
            loop {
                match self.push(&level, &mut open, &mut looks) {
                    None => return false,
                    Some(0) => break,
                    Some(_) => {}
                }
            }
            match looks.checked_sub(self.edges.len()) {
                Some(left) => looks = left,
                None => return false,
            }
        }
    }

    /// How far each node is from the source along edges that are not full.
    fn levels(&self) -> Vec<u32> {
        let mut level = vec![NONE; self.first.len()];
        level[SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            let mut at = self.first[node];
            while at != NONE {
                let edge = &self.edges[at as usize];
                let to = edge.to as usize;
                if edge.left > 0 && level[to] == NONE {
                    level[to] = level[node] + 1;
                    queue.push_back(to);
                }
                at = edge.next;
            }
        }
        level
    }

    /// Pushes along one path from level to level; returns how much, or `None` if time ran out. `open` is the
    /// first edge of each node that may lead on.
    fn push(&mut self, level: &[u32], open: &mut [u32], looks: &mut usize) -> Option<u64> {
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
            *looks = looks.checked_sub(1)?;
            let at = open[node];
            if at == NONE {
                // A dead end: one step back, and never again along that edge.
                let Some(last) = path.pop() else { return Some(0) };
                node = self.edges[last as usize ^ 1].to as usize;
                open[node] = self.edges[last as usize].next;
                continue;
            }
            let edge = &self.edges[at as usize];
            if edge.left > 0 && level[edge.to as usize] == level[node] + 1 {
                path.push(at);
                node = edge.to as usize;
            } else {
                open[node] = edge.next;
            }
        }
        *looks = looks.checked_sub(path.len())?;
        let amount = path.iter().map(|&at| self.edges[at as usize].left).min().unwrap_or(0);
        for at in path {
            self.edges[at as usize].left -= amount;
            self.edges[at as usize ^ 1].left += amount;
        }
        Some(amount)
    }

    /// The nodes that the source still reaches.
    fn reached(&self) -> Vec<bool> {
        self.levels().into_iter().map(|level| level != NONE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a decision costs, or `None` if it leaves something out.
    fn cost(items: &[Item], needs: &[usize], fates: &[Fate]) -> Option<u64> {
        let is_there = |at: &usize| fates[*at] != Fate::NotNeeded;
        let mut total = 0;
        for (item, fate) in items.iter().zip(fates) {
            match fate {
                Fate::NotNeeded => {}
                Fate::Kept => total += item.keep,
                Fate::Again if item.from.iter().all(is_there) => total += item.work?,
                Fate::Again => return None,
            }
        }
        needs.iter().all(is_there).then_some(total)
    }

    /// All decisions, tried one after another.
    fn best(items: &[Item], needs: &[usize]) -> u64 {
        let all = (0..3_usize.pow(items.len() as u32)).filter_map(|mut code| {
            let mut fates = Vec::new();
            for _ in items {
                fates.push([Fate::NotNeeded, Fate::Kept, Fate::Again][code % 3]);
                code /= 3;
            }
            cost(items, needs, &fates)
        });
        all.min().expect("everything can be kept")
    }

    fn random_items(seed: u64) -> (Vec<Item>, Vec<usize>) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n) as usize
        };
        let count = 1 + below(8);
        let mut items: Vec<Item> = Vec::new();
        for at in 0..count {
            let from = (0..below(4)).filter_map(|_| at.checked_sub(1 + below(3))).collect();
            let work = (below(4) > 0).then(|| below(12) as u64);
            items.push(Item { keep: [1, 8, 8, 20][below(4)], work, from });
        }
        (items, (0..1 + below(3)).map(|_| below(count as u64)).collect())
    }

    #[test]
    fn nothing_is_cheaper() {
        let mut again = 0;
        for seed in 0..2000 {
            let (items, needs) = random_items(seed);
            let fates = cheapest(&items, &needs);
            let found =
                cost(&items, &needs, &fates).unwrap_or_else(|| panic!("{items:?} {needs:?} {fates:?}"));
            assert_eq!(found, best(&items, &needs), "{items:?} {needs:?} {fates:?}");
            assert!(cost(&items, &needs, &simplest(&items, &needs)).is_some_and(|cost| cost >= found));
            again += fates.iter().filter(|fate| **fate == Fate::Again).count();
        }
        assert!(again > 1000, "{again}");
    }

    #[test]
    fn of_equal_ones_the_nearest_is_kept() {
        let root = Item { keep: 8, work: None, from: Vec::new() };
        let need = Item { keep: 8, work: Some(0), from: vec![0] };
        assert_eq!(cheapest(&[root, need], &[1]), [Fate::NotNeeded, Fate::Kept]);
    }

    #[test]
    fn long_chains_take_no_longer() {
        let count = 200_000;
        let item = |at: usize| Item {
            keep: 8,
            work: Some(3),
            from: [1, 2, 7].iter().filter_map(|back| at.checked_sub(*back)).collect(),
        };
        let items: Vec<Item> = (0..count).map(item).collect();
        let needs: Vec<usize> = (0..count).step_by(3).collect();
        let start = std::time::Instant::now();
        let fates = cheapest(&items, &needs);
        assert!(cost(&items, &needs, &fates).is_some());
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
