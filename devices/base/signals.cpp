#include "headrace/devices/base/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {
namespace {

std::atomic<void (*)(int)> first_stop{nullptr};
bool on_terminal = false;  // standard error; set before any handler runs

void say(const char* text) {
  // Nothing can be done if standard error is closed.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

const char* what_happened(int signal) {
  switch (signal) {
    case SIGINT: return "headrace: interrupted";
    case SIGTERM: return "headrace: terminated";
    case SIGPIPE: return "headrace: cannot write: the pipe that the output goes to is closed";
    default: return "headrace: hung up";
  }
}

// Returns whether standard output is a pipe that nobody reads any more.
bool output_is_unread() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

extern "C" void end_process(int signal) {
  const int removed = remove_temporary_files();
  // `headrace ... | head`: the reader has what it wanted. Lost work is reported.
  if (signal == SIGPIPE && first_stop.load() == nullptr && output_is_unread()) ::_exit(128 + signal);
  if (on_terminal) say("\n");  // below a progress bar and ^C
  say(what_happened(signal));
  say(removed > 0 ? ", the unfinished files are removed\n" : "\n");
  remove_temporary_files();  // those that another thread began meanwhile
  ::_exit(128 + signal);
}

extern "C" void on_stop_signal(int signal) {
  const int saved = errno;
  void (*const callback)(int) = first_stop.exchange(nullptr);
  // A call that waits for another program would keep waiting.
  if (callback == nullptr || BlockingCall::any()) end_process(signal);
  // What ends now may write more to the same pipe.
  if (signal == SIGPIPE) std::signal(SIGPIPE, SIG_IGN);
  callback(signal);
  errno = saved;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Opens closed standard streams: a file opened while descriptor 1 is free would get the text for standard output.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Read-only; the lowest free descriptor is `stream` itself.
    [[maybe_unused]] const int filled = ::open("/dev/null", O_RDONLY);
  }
}

}  // namespace

void handle_signals() {
  fill_standard_streams();
  on_terminal = ::isatty(STDERR_FILENO) == 1;
  handle(SIGINT, end_process);
  handle(SIGTERM, end_process);
  handle(SIGPIPE, end_process);
  handle(SIGXFSZ, SIG_IGN);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, end_process);  // nohup
}

void handle_first_stop(void (*on_stop)(int signal), std::initializer_list<int> signals) {
  first_stop = on_stop;
  for (const int signal : signals) {
    if (!is_ignored(signal)) handle(signal, on_stop_signal);
  }
}

}  // namespace headrace
