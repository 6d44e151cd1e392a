// What a program does when a signal ends it. For main() alone: a library leaves signals to its program.
#pragma once

namespace headrace {

// Once, before threads and files.
// SIGINT, SIGTERM, SIGHUP: removes the temporary files, says so in one line on standard error and exits with
// 128 + the signal's number. SIGPIPE: the same with status 1. SIGXFSZ is ignored: the write that was too large
// fails with an error. Standard streams that are closed are kept from becoming a file that is opened later: what
// is written to them fails.
void handle_signals();

// The first SIGINT calls `on_interrupt`, in the handler, and the next one ends the process as above.
void handle_first_interrupt(void (*on_interrupt)());

// The same of SIGINT and SIGTERM, whichever comes first; the one that comes after it, of either, ends the process.
void handle_first_stop(void (*on_stop)(int signal));

}  // namespace headrace
