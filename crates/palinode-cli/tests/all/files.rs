//! What the command writes: a file is replaced as a whole, or stays as it was.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn names(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The system kills a process that writes more than it may: here in the middle of the model.
#[cfg(unix)]
#[test]
fn a_kill_while_a_model_is_laid_out_leaves_it_as_it_was() {
    let folder = folder("killed_fmt");
    let model = folder.join("long.pal");
    let untidy = "param   x=1\n".to_string()
        + &"# a line of a comment that makes the file long\n".repeat(400)
        + "loss y=x*x\n";
    fs::write(&model, &untidy).unwrap();
    let fmt = |limit: &str| {
        let line = format!("ulimit -c 0; ulimit -f {limit}; exec \"$0\" fmt --write long.pal");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_palinode")]).current_dir(&folder);
        shell.output().expect("there is a shell").status
    };
    assert!(!fmt("4").success(), "so little is not enough for the file");
    assert_eq!(fs::read_to_string(&model).unwrap(), untidy);
    // And what is left of it stands in nobody's way.
    assert!(fmt("unlimited").success());
    assert!(fs::read_to_string(&model).unwrap().starts_with("param x = 1\n"));
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("linked_fmt");
    let (model, link) = (folder.join("model.pal"), folder.join("link.pal"));
    fs::write(&model, "param   x=1\nloss y=x*x\n").unwrap();
    fs::set_permissions(&model, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("model.pal", &link).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_palinode"))
        .args(["fmt", "--write", "link.pal"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&model).unwrap(), "param x = 1\nloss y = x * x\n");
    assert_eq!(fs::metadata(&model).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(&folder), ["link.pal", "model.pal"]);
}
