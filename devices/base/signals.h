// Handling of signals that end a program. Only for main(): a library leaves signals to its program.
#pragma once

#include <initializer_list>

namespace headrace {

// Installs the handlers. SIGINT, SIGTERM, SIGHUP, SIGPIPE: removes the temporary files, says so in one line on
// standard error and exits with 128 + the signal's number. Silent for a SIGPIPE by standard output, whose reader
// has seen enough, unless handle_first_stop() was called. SIGXFSZ is ignored: the write that was too large fails
// with an error. Closed standard streams are kept from becoming a file opened later: writes to them fail.
// REQUIRES: called once, before threads and files exist.
void handle_signals();

// Makes the first of these signals call `on_stop`, in the handler; the next one ends the process as above, as does
// the first one while a BlockingCall waits. After a first SIGPIPE others are ignored: those writes fail. An
// ignored signal (nohup) stays ignored.
void handle_first_stop(void (*on_stop)(int signal), std::initializer_list<int> signals);

}  // namespace headrace
