#!/usr/bin/env node
// Starts the binary of lispbox for this platform, which npm has installed as an optional dependency.
"use strict";

const { existsSync } = require("node:fs");
const { constants } = require("node:os");
const path = require("node:path");

const { version, optionalDependencies } = require("../package.json");

/** The binary that LISPBOX_BINARY names, or that of the package for this platform. */
function find() {
  const named = process.env.LISPBOX_BINARY;
  if (named) {
    return existsSync(named) ? named : fail(`LISPBOX_BINARY is \`${named}\`, and there is no such file`);
  }
  const platform = `${process.platform}-${process.arch}`;
  // A static binary runs with any C library; npm installs it where there is no glibc.
  const names = [`@lispbox/${platform}`, `@lispbox/${platform}-musl`].filter((name) => name in optionalDependencies);
  if (names.length === 0) {
    const known = Object.keys(optionalDependencies).map((name) => name.replace("@lispbox/", ""));
    return fail(
      `there is no binary for ${platform}; there are binaries for ${known.join(", ")}`,
      "build one with `cargo install lispbox`, and name it with the variable LISPBOX_BINARY",
    );
  }
  let unfit;
  for (const name of names) {
    const manifest = resolve(`${name}/package.json`);
    if (manifest === undefined) continue;
    const about = require(manifest);
    if (about.version !== version) {
      return fail(
        `${name} is of version ${about.version}, and lispbox of version ${version}`,
        `install the same version of both: npm install lispbox@${version}`,
      );
    }
    unfit = unfitness(name, about);
    if (unfit === undefined) return path.join(path.dirname(manifest), about.lispbox.binary);
  }
  const last = names[names.length - 1];
  if (unfit !== undefined) {
    return fail(unfit, `install the static binary: npm install --force ${last}@${version}`);
  }
  return fail(
    `the package ${names.join(" or ")} with the binary for this platform is not installed`,
    "npm leaves it out with `--omit=optional`, `--no-optional` or `optional=false`, and if the lock file or node_modules",
    "was made on another platform. Install it with",
    `    npm install --include=optional lispbox@${version}`,
    "or, if that changes nothing, remove node_modules and the lock file first",
  );
}

function resolve(name) {
  try {
    return require.resolve(name);
  } catch {
    return undefined;
  }
}

/** The reason for which a binary cannot run with the C library of this system. */
function unfitness(name, about) {
  const { loader, glibc } = about.lispbox;
  if (loader && !existsSync(loader)) {
    return `${name} needs glibc, and this system has no ${loader}`;
  }
  if (glibc) {
    process.report.excludeNetwork = true;
    const found = process.report.getReport().header.glibcVersionRuntime;
    if (found && older(found, glibc)) return `${name} needs glibc ${glibc}, and this system has ${found}`;
  }
  return undefined;
}

function older(found, needed) {
  const [a, b] = [found, needed].map((text) => text.split(".").map(Number));
  return a[0] !== b[0] ? a[0] < b[0] : a[1] < b[1];
}

function fail(...lines) {
  console.error(`lispbox: ${lines.join("\n")}`);
  process.exit(2);
}

/** Runs the binary in the place of this process if Node can do that, and otherwise as a child that gets its signals. */
function run(binary, args) {
  if (process.platform !== "win32" && typeof process.execve === "function") {
    process.execve(binary, [binary, ...args], process.env);
  }
  const child = require("node:child_process").spawn(binary, args, { stdio: "inherit", windowsHide: true });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"]) {
    // A terminal sends SIGINT to both processes; the child decides what it means.
    if (signal in constants.signals) process.on(signal, () => signal === "SIGINT" || child.kill(signal));
  }
  child.on("error", (problem) => fail(`${binary} cannot be started: ${problem.message}`));
  child.on("exit", (code, signal) => {
    process.exit(code === null ? 128 + constants.signals[signal] : code);
  });
}

run(find(), process.argv.slice(2));
