//! Narrow recordings: few groups of inputs such that no output depends on two inputs of one group.
//!
//! Input: a recording. Output: the group of each input and the outputs that depend on it; or nothing, if more
//! than [`MOST_GROUPS`] groups would be needed. One forward number with a direction per group then tells all
//! partials.
//!
//! Invariants: it takes no more bytes than it may, and as many whatever it may; a recording that is wide is
//! given up at its first wide node.

use crate::tape::{Record, SINK};
use palinode_num::Scalar;

/// The most groups that are looked for.
pub const MOST_GROUPS: usize = 8;

/// The inputs that a node depends on, in ascending order; [`NONE`] fills the rest.
type Set = [u32; MOST_GROUPS];
const NONE: u32 = u32::MAX;

/// The inputs of a recording in groups; see [`Record::input_groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputGroups {
    group: Vec<u8>,
    count: usize,
    /// Where the outputs of each input begin in `outputs`; one more than there are inputs.
    starts: Vec<u32>,
    outputs: Vec<u32>,
}

impl InputGroups {
    /// The group of each input.
    pub fn group(&self) -> &[u8] {
        &self.group
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The outputs that depend on an input, in ascending order.
    pub fn outputs_of(&self, input: usize) -> &[u32] {
        &self.outputs[self.starts[input] as usize..self.starts[input + 1] as usize]
    }

    /// The heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.group.capacity() + (self.starts.capacity() + self.outputs.capacity()) * size_of::<u32>()
    }
}

/// What came of looking for groups; see [`Record::look_for_groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The groups, if there are few.
    pub groups: Option<InputGroups>,
    /// The bytes that looking took at its peak, the groups included.
    pub bytes: usize,
}

impl<S: Scalar> Record<'_, S> {
    /// Sorts the inputs into at most [`MOST_GROUPS`] groups, such that no output depends on two inputs of one
    /// group. So few inputs are a group each, in their order, and all outputs are taken to depend on them.
    /// `None` if more groups are needed, or if a recording of more inputs has custom operations, arrays, or a
    /// node that depends on more than [`MOST_GROUPS`] of them.
    ///
    /// It may take an output to depend on an input where the derivative happens to be zero, and never misses
    /// one.
    ///
    /// ```
    /// use palinode_core::{Tape, Var};
    ///
    /// let mut tape = Tape::new();
    /// let record = tape.record(&[0.0; 1000], |x: &[Var<f64>]| {
    ///     x.windows(3).map(|w| w[0] * w[2] - w[1]).collect::<Vec<_>>()
    /// })?;
    /// let groups = record.input_groups().expect("three neighbours each");
    /// assert_eq!(groups.count(), 3);
    /// assert_eq!(groups.outputs_of(5), [3, 4, 5]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    pub fn input_groups(&self) -> Option<InputGroups> {
        self.look_for_groups(usize::MAX)?.groups
    }

    /// [`Record::input_groups`] with at most so many bytes; `None` if that is not enough.
    pub fn look_for_groups(&self, spare: usize) -> Option<Looked> {
        let none = |bytes| Some(Looked { groups: None, bytes });
        if self.input_count() <= MOST_GROUPS {
            return self.a_group_for_each(spare);
        }
        if self.has_more_than_edges() {
            return none(0);
        }
        let mut sets = Sets::new(self.input_count(), self.node_count());
        let mut is_enough = sets.bytes() <= spare;
        let all = is_enough
            && self.for_each_parents(|node, parents| {
                is_enough = sets.bytes_with(node) <= spare;
                is_enough && sets.see(node, parents)
            });
        if !is_enough {
            return None;
        }
        if !all {
            return none(sets.bytes());
        }
        let rows = || self.output_nodes().iter().map(|&node| sets.of(node));
        // By input: count, then place.
        let entries: usize = rows().map(|set| members(&set).count()).sum();
        let inputs = self.input_count();
        let lists = (3 * (inputs + 1) + entries) * size_of::<u32>() + inputs;
        let bytes = sets.bytes() + lists;
        if bytes > spare {
            return None;
        }
        let mut starts = vec![0_u32; inputs + 1];
        rows().for_each(|set| members(&set).for_each(|input| starts[input as usize + 1] += 1));
        for input in 0..inputs {
            starts[input + 1] += starts[input];
        }
        let mut outputs = vec![0_u32; entries];
        let mut next = starts.clone();
        for (output, set) in rows().enumerate() {
            for input in members(&set) {
                outputs[next[input as usize] as usize] = output as u32;
                next[input as usize] += 1;
            }
        }
        drop(next);
        let row = |output: u32| sets.of(self.output_nodes()[output as usize]);
        let groups = grouped(&starts, &outputs, row).map(|(group, count)| InputGroups {
            group,
            count,
            starts,
            outputs,
        });
        Some(Looked { groups, bytes })
    }

    /// So few inputs that it does not matter which outputs depend on which.
    fn a_group_for_each(&self, spare: usize) -> Option<Looked> {
        let (inputs, outputs) = (self.input_count() as u32, self.output_count() as u32);
        let bytes = (inputs * outputs + inputs + 1) as usize * size_of::<u32>() + inputs as usize;
        let groups = || InputGroups {
            group: (0..inputs as u8).collect(),
            count: inputs as usize,
            starts: (0..=inputs).map(|input| input * outputs).collect(),
            outputs: (0..inputs * outputs).map(|entry| entry % outputs).collect(),
        };
        (bytes <= spare).then(|| Looked { groups: Some(groups()), bytes })
    }
}

/// For each node the inputs that it depends on; filled in the order of the nodes.
struct Sets {
    inputs: usize,
    /// For the nodes after the inputs, so many in each.
    blocks: Vec<Box<[Set]>>,
}

impl Sets {
    const BLOCK: usize = 32;

    fn new(inputs: usize, nodes: usize) -> Self {
        Sets { inputs, blocks: Vec::with_capacity(nodes.saturating_sub(inputs).div_ceil(Sets::BLOCK)) }
    }

    /// The bytes held.
    fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Box<[Set]>>() + self.blocks.len() * Sets::BLOCK * size_of::<Set>()
    }

    /// The bytes held once a node has been seen.
    fn bytes_with(&self, node: u32) -> usize {
        let new = self.place(node).is_some_and(|(block, _)| block == self.blocks.len());
        self.bytes() + usize::from(new) * Sets::BLOCK * size_of::<Set>()
    }

    /// Where the set of a node is, unless the node is the sink or an input.
    fn place(&self, node: u32) -> Option<(usize, usize)> {
        let after = (node as usize).checked_sub(self.inputs + 1)?;
        Some((after / Sets::BLOCK, after % Sets::BLOCK))
    }

    fn of(&self, node: u32) -> Set {
        let mut own = [NONE; MOST_GROUPS];
        match self.place(node) {
            Some((block, index)) => self.blocks[block][index],
            None => {
                if node != SINK {
                    own[0] = node - 1;
                }
                own
            }
        }
    }

    /// The set of the next node; false if it is too large.
    fn see(&mut self, node: u32, mut parents: &mut dyn Iterator<Item = u32>) -> bool {
        let Some((block, index)) = self.place(node) else { return true };
        if block == self.blocks.len() {
            self.blocks.push(vec![[NONE; MOST_GROUPS]; Sets::BLOCK].into_boxed_slice());
        }
        let mut set = [NONE; MOST_GROUPS];
        let all = (&mut parents).all(|parent| join(&mut set, &self.of(parent)));
        self.blocks[block][index] = set;
        all
    }
}

/// The members of a set that is not too large.
fn members(set: &Set) -> impl Iterator<Item = u32> + '_ {
    set.iter().copied().take_while(|&input| input != NONE)
}

/// The first set becomes the union of both; false if that is too large.
fn join(set: &mut Set, other: &Set) -> bool {
    for input in members(other) {
        let place = set.iter().position(|&member| member >= input).unwrap_or(MOST_GROUPS);
        if place < MOST_GROUPS && set[place] == input {
            continue;
        }
        if set[MOST_GROUPS - 1] != NONE {
            return false;
        }
        set.copy_within(place..MOST_GROUPS - 1, place + 1);
        set[place] = input;
    }
    true
}

/// A group for each input, greedily: those with many outputs first, as in Gebremedhin, Manne and Pothen's
/// colourings.
fn grouped(starts: &[u32], outputs: &[u32], row: impl Fn(u32) -> Set) -> Option<(Vec<u8>, usize)> {
    const UNGROUPED: u8 = u8::MAX;
    let inputs = starts.len() - 1;
    let mut order: Vec<u32> = (0..inputs as u32).collect();
    order.sort_unstable_by_key(|&input| {
        let degree = starts[input as usize + 1] - starts[input as usize];
        (core::cmp::Reverse(degree), input)
    });
    let mut group = vec![UNGROUPED; inputs];
    let mut count = 0;
    for input in order {
        let input = input as usize;
        let mut taken = 0_u16;
        for &output in &outputs[starts[input] as usize..starts[input + 1] as usize] {
            for other in members(&row(output)) {
                if group[other as usize] != UNGROUPED {
                    taken |= 1 << group[other as usize];
                }
            }
        }
        let free = taken.trailing_ones() as usize;
        if free >= MOST_GROUPS {
            return None;
        }
        group[input] = free as u8;
        count = count.max(free + 1);
    }
    Some((group, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Tape, Var};

    fn groups_of(n: usize, f: impl Fn(&[Var<f64>]) -> Vec<Var<f64>>) -> Option<InputGroups> {
        let x: Vec<f64> = (0..n).map(|i| 0.3 + i as f64 / 7.0).collect();
        let mut tape = Tape::new();
        let record = tape.record(&x, f).unwrap();
        let groups = record.input_groups();
        if let Some(groups) = &groups {
            let looked = record.look_for_groups(usize::MAX).unwrap();
            assert!(groups.heap_bytes() <= looked.bytes);
            assert_eq!(record.look_for_groups(looked.bytes), Some(looked.clone()));
            assert_eq!(record.look_for_groups(looked.bytes - 1), None);
            // The pattern is that of the sparse driver, and no output meets a group twice.
            for (output, row) in record.pattern().iter().enumerate() {
                let by_input: Vec<usize> =
                    (0..n).filter(|&input| groups.outputs_of(input).contains(&(output as u32))).collect();
                if n > MOST_GROUPS {
                    assert_eq!(&by_input, row);
                }
                let mut seen: Vec<u8> = row.iter().map(|&input| groups.group()[input]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), row.len());
            }
        }
        groups
    }

    #[test]
    fn a_ring_of_neighbours_needs_three_groups_or_four() {
        let ring = |x: &[Var<f64>]| {
            let n = x.len();
            (0..n).map(|i| x[i] * (x[(i + 1) % n] - x[(i + n - 1) % n]).sin()).collect()
        };
        assert_eq!(groups_of(999, ring).unwrap().count(), 3);
        assert_eq!(groups_of(1000, ring).unwrap().count(), 4);
    }

    #[test]
    fn an_input_of_all_outputs_has_a_group_of_its_own() {
        let shared = |x: &[Var<f64>]| x[1..].windows(2).map(|w| w[0] * x[0] + w[1]).collect();
        let groups = groups_of(100, shared).unwrap();
        assert_eq!(groups.count(), 3);
        assert_eq!(groups.group().iter().filter(|&&g| g == groups.group()[0]).count(), 1);
    }

    #[test]
    fn what_depends_on_nine_inputs_is_not_narrow() {
        assert_eq!(groups_of(9, |x| vec![x.iter().sum::<Var<f64>>() * x[0]]), None);
        assert_eq!(groups_of(8, |x| vec![x.iter().sum::<Var<f64>>() * x[0]]).unwrap().count(), 8);
        let constant = groups_of(9, |x| vec![x[0] * x[1], Var::lift(2.0)]);
        assert_eq!(constant.unwrap().count(), 2);
    }

    #[test]
    fn outputs_that_share_no_input_share_groups_and_clashing_pairs_do_not() {
        // All pairs of nine inputs: every two meet somewhere.
        let pairs = |x: &[Var<f64>]| {
            let mut all = Vec::new();
            for i in 0..x.len() {
                all.extend((0..i).map(|j| x[i] * x[j]));
            }
            all
        };
        assert_eq!(groups_of(9, pairs), None);
        assert_eq!(groups_of(8, pairs).unwrap().count(), 8);
        assert_eq!(groups_of(64, |x| x.iter().map(|x| x.exp()).collect()).unwrap().count(), 1);
    }
}
