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

#[test]
fn a_restore_of_an_empty_slot() {
    let mistake = changed(|actions| actions.insert(0, Action::Restore { step: 0, slot: slot(2) }));
    expect(mistake, 0, Wrong::SlotEmpty { slot: slot(2) });
}

#[test]
fn a_snapshot_into_a_slot_in_use() {
    let mistake = changed(|actions| {
        let Action::Snapshot { slot, .. } = &mut actions[2] else { panic!("{:?}", actions[2]) };
        slot.index = 0;
    });
    expect(mistake, 2, Wrong::SlotInUse { slot: slot(0), holds: 0 });
}

#[test]
fn a_slot_that_does_not_exist() {
    let mistake = changed(|actions| actions.insert(0, Action::Snapshot { step: 0, slot: slot(3) }));
    expect(mistake, 0, Wrong::NoSuchSlot { slot: slot(3) });
    let disk = Slot { tier: Tier::Disk, index: 2 };
    let mistake = changed(|actions| actions.insert(0, Action::Snapshot { step: 0, slot: disk }));
    expect(mistake, 0, Wrong::NoSuchSlot { slot: disk });
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
fn a_leaked_slot() {
    for tier in [Tier::Memory, Tier::Disk] {
        let leaked = Slot { tier, index: 1 };
        let actions = [
            Action::Snapshot { step: 0, slot: leaked },
            Action::Record { step: 0 },
            Action::Reverse { step: 0 },
        ];
        expect(check(actions, 1, SLOTS).unwrap_err(), 3, Wrong::Leak { slot: leaked, holds: 0 });
    }
}

#[test]
fn a_stream_that_stops_early() {
    let mistake = changed(|actions| actions.truncate(actions.len() - 3));
    assert!(matches!(mistake.what, Wrong::Unfinished { below: 1 }), "{mistake}");
}

#[test]
fn reversed_out_of_order() {
    let record = |step| Action::Record { step };
    let reverse = |step| Action::Reverse { step };
    let mistake = check([record(0), record(1), reverse(0)], 2, SLOTS).unwrap_err();
    expect(mistake, 2, Wrong::Order { asked: 0, due: 1 });
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
    let mistake = check([Action::Reverse { step: 0 }], 1, SLOTS).unwrap_err();
    expect(mistake, 0, Wrong::NotRecorded { step: 0 });
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

#[test]
fn recorded_twice() {
    let actions = [
        Action::Snapshot { step: 0, slot: slot(0) },
        Action::Record { step: 0 },
        Action::Restore { step: 0, slot: slot(0) },
        Action::Record { step: 0 },
    ];
    expect(check(actions, 1, SLOTS).unwrap_err(), 3, Wrong::RecordedTwice { step: 0 });
    let after = [actions[0], actions[1], Action::Reverse { step: 0 }, actions[2], actions[3]];
    expect(check(after, 1, SLOTS).unwrap_err(), 4, Wrong::RecordedTwice { step: 0 });
}

#[test]
fn advanced_from_elsewhere_nowhere_or_too_far() {
    let advance = |from, to| [Action::Advance { from, to }];
    expect(check(advance(1, 2), 6, SLOTS).unwrap_err(), 0, Wrong::Position { asked: 1, live: 0 });
    expect(check(advance(0, 0), 6, SLOTS).unwrap_err(), 0, Wrong::Direction { from: 0, to: 0 });
    expect(check(advance(0, 7), 6, SLOTS).unwrap_err(), 0, Wrong::Beyond { step: 6, steps: 6 });
    assert!(matches!(check(advance(0, 6), 6, SLOTS).unwrap_err().what, Wrong::Unfinished { .. }));
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
