//! Runs the measurements of all engines in turns, and prints their medians.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::{env, str};

use super::measure::{Figures, Measured, ROWS, Unit, measured};
use crate::{Failed, version};

/// The option that makes the program a process of one measurement.
pub const CHILD: &str = "--measure";

/// Prints the table: in every round each engine has its turn, and the engine that begins is another one each time.
pub fn print(rounds: usize) -> Result<(), Failed> {
    let engines = measured();
    let mut figures: HashMap<(&str, String), Vec<f64>> = HashMap::new();
    for round in 0..rounds {
        for turn in 0..engines.len() {
            let engine = &engines[(round + turn) % engines.len()];
            for part in ["times", "memory"] {
                for (row, figure) in child(engine, part)? {
                    figures.entry((engine.name, row)).or_default().push(figure);
                }
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let figure = |engine: &Measured, row: &str| {
        figures.get(&(engine.name, row.to_string())).map(|figures| middle(figures.clone()))
    };
    println!(
        "| | {} |",
        engines.iter().map(|it| format!("{} {}", it.name, version(it.name))).collect::<Vec<_>>().join(" | ")
    );
    println!("|---{}|", "|--:".repeat(engines.len()));
    for (row, description, unit) in ROWS {
        let lispbox = figure(&engines[0], row);
        let cells = engines.iter().map(|engine| match (figure(engine, row), lispbox) {
            (Some(figure), _) if engine.name == engines[0].name => show(figure, unit),
            (Some(figure), Some(lispbox)) => format!("{} ({})", show(figure, unit), digits(figure / lispbox)),
            _ => "—".to_string(),
        });
        println!("| {description} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    println!("\nMedians of {rounds} rounds; in parentheses, times the figure of lispbox.\n");
    for engine in &engines {
        engine.notes.iter().for_each(|note| println!("- {}, {note}", engine.name));
        engine.unable.iter().for_each(|reason| println!("- {}, suspend and resume —: {reason}", engine.name));
    }
    Ok(())
}

/// Measures a part of an engine in this process, and prints the figures for [`print`].
pub fn measure(name: &str, part: &str) -> Result<(), Failed> {
    let engine = measured().into_iter().find(|engine| engine.name == name).ok_or("no such engine")?;
    let figures: Figures = match part {
        "times" => (engine.times)()?,
        "memory" => (engine.memory)()?,
        _ => return Err("no such part".into()),
    };
    figures.iter().for_each(|(row, figure)| println!("{row} {figure:e}"));
    Ok(())
}

/// Measures a part of an engine in a process of its own.
fn child(engine: &Measured, part: &str) -> Result<Vec<(String, f64)>, Failed> {
    let mut command = Command::new(env::current_exe()?);
    let output = command.args([CHILD, engine.name, part]).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} {part}: {}", engine.name, output.status).into());
    }
    let line = |line: &str| -> Result<(String, f64), Failed> {
        let (row, figure) = line.split_once(' ').ok_or("a name and a figure")?;
        Ok((row.to_string(), figure.parse()?))
    };
    str::from_utf8(&output.stdout)?.lines().map(line).collect()
}

/// The median.
pub fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A figure with its unit.
fn show(figure: f64, unit: Unit) -> String {
    let units: &[(f64, &str)] = match unit {
        Unit::Seconds => &[(1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
        Unit::Bytes => &[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
    };
    let (size, name) = units.iter().find(|(size, _)| figure >= *size).unwrap_or(&units[2]);
    format!("{} {name}", digits(figure / size))
}

/// A number with two digits or, from a hundred on, with all digits before the point.
fn digits(number: f64) -> String {
    match number {
        ..0.095 => format!("{number:.3}"),
        ..0.95 => format!("{number:.2}"),
        ..9.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
