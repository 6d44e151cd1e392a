// What a program does when a signal ends it. For main() alone: a library leaves signals to its program.
#pragma once

#include <initializer_list>

namespace headrace {

// Once, before threads and files.
// SIGINT, SIGTERM, SIGHUP, SIGPIPE: removes the temporary files, says so in one line on standard error and exits
// with 128 + the signal's number. It says nothing of a SIGPIPE by standard output, whose reader has seen enough,
// unless handle_first_stop() was called. SIGXFSZ is ignored: the write that was too large fails with an error.
// Standard streams that are closed are kept from becoming a file that is opened later: what is written to them
// fails.
void handle_signals();

// The first of these signals calls `on_stop`, in the handler, whichever it is; the one that comes after it ends
// the process as above, and so does the first one while a BlockingCall waits. A signal that is ignored (nohup)
// stays so.
void handle_first_stop(void (*on_stop)(int signal), std::initializer_list<int> signals);

}  // namespace headrace
