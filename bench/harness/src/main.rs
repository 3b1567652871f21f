//! Runs every program with every contender, each run in a process of its own, the contenders taking turns, and prints
//! one table of medians per program, then how far the numbers to reach are reached.

mod cli;
mod contenders;
mod json;
mod machine;
mod memory;
mod process;
mod programs;
mod results;
mod scaling;
mod table;
mod targets;

use cli::Flags;
use contenders::{CONTENDERS, Contender, Invocation, Places};
use machine::Machine;
use programs::{Entrants, PROGRAMS, Program};
use results::{Outcome, Sample};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use targets::Results;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(memory::FLAG) {
        memory::touch();
        return ExitCode::SUCCESS;
    }
    match Flags::parse(std::env::args().skip(1)) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Ok(flags) if flags.help => {
            print!("{}", cli::HELP);
            ExitCode::SUCCESS
        }
        Ok(flags) if flags.list => {
            PROGRAMS.iter().for_each(|p| println!("program {}", p.name));
            CONTENDERS
                .iter()
                .for_each(|c| println!("contender {}", c.name));
            ExitCode::SUCCESS
        }
        Ok(flags) => match tournament(&flags) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn tournament(flags: &Flags) -> Result<(), String> {
    let machine = Machine::here();
    let places = places(flags)?;
    let mut results = Results::new();
    let mut markdown = format!("{machine}; medians of {}.\n", flags.reps);
    println!("{machine}; medians of {}\n", flags.reps);

    let mut publish = |table: &table::Table| {
        println!("{}", table.text());
        markdown.push_str(&format!("\n{}", table.markdown()));
    };
    for program in PROGRAMS.iter().filter(|p| flags.wants_program(p.name)) {
        let outcomes = compare(program, flags, &places);
        if program.entrants == Entrants::All {
            let rows: Vec<_> = outcomes.iter().map(|(name, o)| (*name, o)).collect();
            publish(&table::of_program(program.name.into(), &rows));
        }
        for (contender, outcome) in outcomes {
            results.insert((program.name, contender), outcome);
        }
    }
    if results
        .keys()
        .any(|(program, _)| program.starts_with("scaling"))
    {
        publish(&scaling::table(&results));
    }
    let targets = targets::all(&results);
    publish(&targets::table(&targets));

    if let Some(file) = &flags.markdown {
        write(file, &markdown)?;
    }
    if let Some(file) = &flags.json {
        let document = json::document(&machine, &results, &targets);
        write(file, &format!("{document:#}\n"))?;
    }
    Ok(())
}

/// Runs one program with all contenders, who take turns; whoever fails once is out.
fn compare(program: &Program, flags: &Flags, places: &Places) -> Vec<(&'static str, Outcome)> {
    let mut entrants: Vec<Entrant> = CONTENDERS
        .iter()
        .filter(|c| flags.wants_contender(c.name) && c.enters(program))
        .map(|contender| Entrant::new(contender, program, places))
        .collect();
    for rep in 1..=flags.reps {
        for entrant in &mut entrants {
            entrant.take_turn(program, flags, rep);
        }
    }
    entrants.into_iter().map(Entrant::finish).collect()
}

/// A contender in one program.
struct Entrant {
    name: &'static str,
    invocation: Option<Invocation>,
    samples: Vec<Sample>,
    out: Option<Outcome>,
}

impl Entrant {
    fn new(contender: &'static Contender, program: &Program, places: &Places) -> Self {
        let invocation = contender.invocation(program, places);
        Self {
            name: contender.name,
            out: invocation.as_ref().err().cloned().map(Outcome::Missing),
            invocation: invocation.ok(),
            samples: Vec::new(),
        }
    }

    fn take_turn(&mut self, program: &Program, flags: &Flags, rep: usize) {
        let Some(invocation) = self.invocation.as_ref().filter(|_| self.out.is_none()) else {
            return;
        };
        eprintln!("{} {rep}/{}: {}", program.name, flags.reps, self.name);
        memory::warm();
        let sample = process::run(&invocation.command, flags.timeout)
            .and_then(|run| results::sample(&run, program.checksum));
        match sample {
            Ok(sample) => self.samples.push(sample),
            Err(reason) => self.out = Some(Outcome::Failed(reason)),
        }
    }

    fn finish(mut self) -> (&'static str, Outcome) {
        if let Some(outcome) = self.out {
            return (self.name, outcome);
        }
        let settings = self.invocation.and_then(|invocation| invocation.settings);
        if let (Some(settings), Some(last)) = (settings, self.samples.last_mut()) {
            let separator = if last.note.is_empty() { "" } else { "; " };
            last.note = format!("{settings}{separator}{}", last.note);
        }
        (self.name, Outcome::of(self.samples))
    }
}

fn places(flags: &Flags) -> Result<Places, String> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the harness lies in bench/");
    let root = bench.parent().expect("bench/ lies in the repository");
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let binaries = own.parent().expect("a file lies in a folder").to_path_buf();
    let liveoak = match &flags.liveoak {
        Some(path) => path.clone(),
        None => root.join("target/release/liveoak"),
    };
    Ok(Places {
        classes: compile_java(&bench.join("java"), &binaries.join("java")),
        binaries,
        liveoak: probe_liveoak(liveoak),
    })
}

/// Does the binary exist, and know the command `bench`?
fn probe_liveoak(binary: PathBuf) -> Result<PathBuf, String> {
    match Command::new(&binary).args(["bench", "--help"]).output() {
        Err(_) => Err("not built".into()),
        Ok(output) if !output.status.success() || output.stdout.is_empty() => {
            Err("not built: this liveoak has no command bench".into())
        }
        Ok(_) => Ok(binary),
    }
}

/// Compiles the Java programs; an error says what is missing.
fn compile_java(sources: &Path, classes: &Path) -> Result<PathBuf, String> {
    let has = |tool: &str| Command::new(tool).arg("-version").output().is_ok();
    if !has("java") || !has("javac") {
        return Err("not installed: java and javac".into());
    }
    let files = std::fs::read_dir(sources).map_err(|error| error.to_string())?;
    let files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    let output = Command::new("javac")
        .arg("-d")
        .arg(classes)
        .args(files)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(classes.to_path_buf()),
        false => Err("javac does not compile the programs".into()),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
