//! The checker of schedules is checked: each planted mistake is named, at its place.

use palinode_core::schedule::{Action, Mistake, PerTier, Slot, Tier, Wrong, binomial, check};

const SLOTS: PerTier = PerTier { memory: 3, disk: 2 };

fn slot(index: u32) -> Slot {
    Slot { tier: Tier::Memory, index }
}

/// The stream of six steps with three slots, changed.
fn changed(change: impl FnOnce(&mut Vec<Action>)) -> Mistake {
    let mut actions: Vec<Action> = binomial(6, 3).unwrap().collect();
    assert!(check(actions.clone(), 6, SLOTS).is_ok());
    change(&mut actions);
    check(actions, 6, SLOTS).unwrap_err()
}

fn place(actions: &[Action], wanted: impl Fn(&Action) -> bool) -> usize {
    actions.iter().position(wanted).expect("such an action")
}

fn expect(mistake: Mistake, at: usize, what: Wrong) {
    assert_eq!(mistake, Mistake { at: at as u64, what });
    assert_eq!(mistake.code(), "PAL0503");
    assert!(mistake.to_string().starts_with(&format!("PAL0503: not a schedule: action {at}: ")), "{mistake}");
}

fn is_restore(action: &Action) -> bool {
    matches!(action, Action::Restore { .. })
}

#[test]
fn a_restore_of_another_state() {
    let mut at = 0;
    let mistake = changed(|actions| {
        at = place(actions, is_restore);
        if let Action::Restore { step, .. } = &mut actions[at] {
            *step += 1;
        }
    });
    let Wrong::OtherState { holds, asked, .. } = mistake.what else { panic!("{mistake}") };
    assert_eq!((mistake.at, asked), (at as u64, holds + 1));
}

/// What the first wrong action of a short stream is.
#[test]
fn wrong_actions_are_named_with_their_place() {
    use Action::{Advance, Record, Restore, Reverse, Snapshot};
    let disk = |index| Slot { tier: Tier::Disk, index };
    let kept = |slot| Snapshot { step: 0, slot };
    let (record, reverse, restore) =
        (|step| Record { step }, |step| Reverse { step }, Restore { step: 0, slot: slot(0) });
    let advance = |from, to| vec![Advance { from, to }];
    let wrong: [(Vec<Action>, u64, usize, Wrong); 13] = [
        (vec![Restore { step: 0, slot: slot(2) }], 6, 0, Wrong::SlotEmpty { slot: slot(2) }),
        (vec![kept(slot(0)), kept(slot(0))], 6, 1, Wrong::SlotInUse { slot: slot(0), holds: 0 }),
        (vec![kept(slot(3))], 6, 0, Wrong::NoSuchSlot { slot: slot(3) }),
        (vec![kept(disk(2))], 6, 0, Wrong::NoSuchSlot { slot: disk(2) }),
        (vec![kept(slot(1)), record(0), reverse(0)], 1, 3, Wrong::Leak { slot: slot(1), holds: 0 }),
        (vec![kept(disk(1)), record(0), reverse(0)], 1, 3, Wrong::Leak { slot: disk(1), holds: 0 }),
        (vec![record(0), record(1), reverse(0)], 2, 2, Wrong::Order { asked: 0, due: 1 }),
        (vec![reverse(0)], 1, 0, Wrong::NotRecorded { step: 0 }),
        (vec![kept(slot(0)), record(0), restore, record(0)], 1, 3, Wrong::RecordedTwice { step: 0 }),
        (
            vec![kept(slot(0)), record(0), reverse(0), restore, record(0)],
            1,
            4,
            Wrong::RecordedTwice { step: 0 },
        ),
        (advance(1, 2), 6, 0, Wrong::Position { asked: 1, live: 0 }),
        (advance(0, 0), 6, 0, Wrong::Direction { from: 0, to: 0 }),
        (advance(0, 7), 6, 0, Wrong::Beyond { step: 6, steps: 6 }),
    ];
    for (actions, steps, at, what) in wrong {
        expect(check(actions, steps, SLOTS).unwrap_err(), at, what);
    }
    assert!(matches!(check(advance(0, 6), 6, SLOTS).unwrap_err().what, Wrong::Unfinished { .. }));
}

#[test]
fn a_slot_that_is_freed_too_early_or_twice() {
    let mistake = changed(|actions| {
        let at = place(actions, |action| matches!(action, Action::Free { .. }));
        actions.insert(at, actions[at]);
    });
    assert!(matches!(mistake.what, Wrong::SlotEmpty { .. }), "{mistake}");
    let mistake = changed(|actions| actions.insert(1, Action::Free { slot: slot(0) }));
    assert!(matches!(mistake.what, Wrong::SlotEmpty { slot } if slot.index == 0), "{mistake}");
}

#[test]
fn a_stream_that_stops_early() {
    let mistake = changed(|actions| actions.truncate(actions.len() - 3));
    assert!(matches!(mistake.what, Wrong::Unfinished { below: 1 }), "{mistake}");
}

#[test]
fn reversed_twice() {
    let mistake = changed(|actions| {
        let at = place(actions, |action| matches!(action, Action::Reverse { .. }));
        actions.insert(at + 1, actions[at]);
    });
    assert!(matches!(mistake.what, Wrong::ReversedTwice { step: 5 }), "{mistake}");
}

#[test]
fn reversed_without_residuals() {
    let mut at = 0;
    let mistake = changed(|actions| {
        at = place(actions, |action| matches!(action, Action::Record { .. }));
        actions.remove(at);
    });
    expect(mistake, at, Wrong::NotRecorded { step: 5 });
}

#[test]
fn recorded_at_the_wrong_place() {
    let mistake = changed(|actions| {
        let at = place(actions, |action| matches!(action, Action::Record { step: 4 }));
        actions[at] = Action::Record { step: 3 };
    });
    assert!(matches!(mistake.what, Wrong::Position { asked: 3, live: 4 }), "{mistake}");
}

/// Every single action that is dropped from, or said twice in, a schedule is noticed.
#[test]
fn no_action_can_be_dropped_or_repeated() {
    let actions: Vec<Action> = binomial(40, 4).unwrap().collect();
    let slots = PerTier { memory: 4, disk: 0 };
    for at in 0..actions.len() {
        let mut dropped = actions.clone();
        dropped.remove(at);
        assert!(check(dropped, 40, slots).is_err(), "without {at}: {:?}", actions[at]);
        let mut repeated = actions.clone();
        repeated.insert(at, actions[at]);
        // To restore twice is a waste, not a mistake.
        assert_eq!(
            check(repeated, 40, slots).is_ok(),
            is_restore(&actions[at]),
            "twice {at}: {:?}",
            actions[at]
        );
    }
}
