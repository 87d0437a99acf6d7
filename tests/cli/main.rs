//! The command line: commands, configurations, pages of the documentation, and the REPL in a pseudo-terminal.
#![cfg(feature = "cli")]

#[path = "../mcp_client/mod.rs"]
mod mcp_client;
#[path = "../peers/mod.rs"]
mod peers;

mod cards;
mod client_files;
mod closed_pipes;
mod command_line;
mod configuration;
mod desktop;
mod doctor;
mod door_attacks;
mod end_to_end;
mod first_use;
mod found_commands;
mod local_page;
mod moved_servers;
mod pages;
mod recorded_clients;
mod rehearsals;
mod repl;
mod run_keys;
mod setup;
mod setup_files;
mod store_troubles;
