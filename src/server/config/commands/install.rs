//! The command with which a person installs a missing command.

/// How one kind of command is installed. An empty text is a way that does not exist.
struct Package {
    programs: &'static [&'static str],
    /// A command for every system but Windows, if there is one.
    command: &'static str,
    homebrew: &'static str,
    winget: &'static str,
    /// The package of Linux distributions.
    linux: &'static str,
}

const PACKAGES: &[Package] = &[
    Package {
        programs: &["npx", "npm", "node"],
        command: "",
        homebrew: "node",
        winget: "OpenJS.NodeJS.LTS",
        linux: "npm",
    },
    Package {
        programs: &["uvx", "uv"],
        command: "curl -LsSf https://astral.sh/uv/install.sh | sh",
        homebrew: "",
        winget: "astral-sh.uv",
        linux: "",
    },
    Package {
        programs: &["bunx", "bun"],
        command: "curl -fsSL https://bun.sh/install | bash",
        homebrew: "",
        winget: "Oven-sh.Bun",
        linux: "",
    },
    Package {
        programs: &["deno"],
        command: "curl -fsSL https://deno.land/install.sh | sh",
        homebrew: "",
        winget: "DenoLand.Deno",
        linux: "",
    },
    Package {
        programs: &["python3", "python"],
        command: "",
        homebrew: "python",
        winget: "Python.Python.3.13",
        linux: "python3",
    },
    Package { programs: &["pipx"], command: "", homebrew: "pipx", winget: "", linux: "pipx" },
    Package {
        programs: &["pnpm", "pnpx"],
        command: "npm install -g pnpm",
        homebrew: "",
        winget: "pnpm.pnpm",
        linux: "",
    },
    Package { programs: &["yarn"], command: "npm install -g yarn", homebrew: "", winget: "Yarn.Yarn", linux: "" },
    Package {
        programs: &["docker"],
        command: "",
        homebrew: "--cask docker",
        winget: "Docker.DockerDesktop",
        linux: "docker.io",
    },
    Package { programs: &["podman"], command: "", homebrew: "podman", winget: "RedHat.Podman", linux: "podman" },
    Package { programs: &["git"], command: "", homebrew: "git", winget: "Git.Git", linux: "git" },
];

/// The package managers of Linux distributions, with the words before the name of a package.
const MANAGERS: &[(&str, &str)] = &[
    ("apt-get", "sudo apt-get install"),
    ("dnf", "sudo dnf install"),
    ("pacman", "sudo pacman -S"),
    ("zypper", "sudo zypper install"),
    ("apk", "sudo apk add"),
];

/// The systems between which the ways differ.
#[derive(Clone, Copy)]
enum System {
    Windows,
    MacOs,
    Other,
}

/// Returns the command that installs a program on this system, if it is known; `has` tells which package manager is
/// there.
pub(super) fn command(program: &str, has: &dyn Fn(&str) -> bool) -> Option<String> {
    let system = match std::env::consts::OS {
        "windows" => System::Windows,
        "macos" => System::MacOs,
        _ => System::Other,
    };
    command_on(system, program, has)
}

fn command_on(system: System, program: &str, has: &dyn Fn(&str) -> bool) -> Option<String> {
    let package = PACKAGES.iter().find(|package| package.programs.contains(&program))?;
    let with = |words: &str, name: &str| (!name.is_empty()).then(|| format!("{words} {name}"));
    let command = (!package.command.is_empty()).then(|| package.command.to_owned());
    match system {
        System::Windows => with("winget install", package.winget),
        System::MacOs => command.or_else(|| with("brew install", package.homebrew)),
        System::Other => command.or_else(|| {
            let (_, words) = MANAGERS.iter().find(|(manager, _)| has(manager))?;
            with(words, package.linux)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{System, command_on};

    #[test]
    fn each_system_installs_in_its_own_way() {
        let on = |system, program: &str| command_on(system, program, &|manager| manager == "dnf");
        for (program, windows, macos, linux) in [
            ("npx", "winget install OpenJS.NodeJS.LTS", "brew install node", "sudo dnf install npm"),
            (
                "uvx",
                "winget install astral-sh.uv",
                "curl -LsSf https://astral.sh/uv/install.sh | sh",
                "curl -LsSf https://astral.sh/uv/install.sh | sh",
            ),
        ] {
            assert_eq!(on(System::Windows, program).as_deref(), Some(windows));
            assert_eq!(on(System::MacOs, program).as_deref(), Some(macos));
            assert_eq!(on(System::Other, program).as_deref(), Some(linux));
        }
        assert_eq!(command_on(System::Other, "npx", &|_| false), None);
        assert_eq!(on(System::Other, "my-own-server"), None);
    }
}
