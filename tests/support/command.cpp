#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"

extern char** environ;  // NOLINT: POSIX's name

namespace headrace::test {
namespace {

// A file that is gone when this object is.
class ScratchFile {
 public:
  ScratchFile() {
    std::string name = (std::filesystem::temp_directory_path() / "headrace-command-XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) throw std::runtime_error("cannot make a temporary file");
    ::close(descriptor);
    path_ = name;
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const char* path() const { return path_.c_str(); }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const ScratchFile output;
  const ScratchFile errors;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.path(), O_WRONLY | O_TRUNC, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, errors.path(), O_WRONLY | O_TRUNC, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot start " + arguments[0]);

  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output.text(), errors.text()};
}

namespace {

constexpr char kCtrlC = '\x03';

}  // namespace

TerminalRun run_on_terminal(const std::vector<std::string>& arguments, int columns,
                            const std::string& interrupt_at) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("no pseudo-terminal can be opened");
  if (child == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  TerminalRun run;
  bool interrupt = !interrupt_at.empty();
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t count = ::read(terminal, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // EIO: the program has ended
    run.text.append(bytes.data(), static_cast<std::size_t>(count));
    if (interrupt && run.text.find(interrupt_at) != std::string::npos) {
      interrupt = ::write(terminal, &kCtrlC, 1) != 1;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

Screen shown(const std::string& text, int columns) {
  static constexpr std::string_view kClearToEnd = "\033[K";
  Screen screen{.lines = {""}};
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (std::string_view(text).substr(at).starts_with(kClearToEnd)) {
      screen.lines.back().resize(std::min(column, screen.lines.back().size()));
      at += kClearToEnd.size() - 1;
    } else if (text[at] == '\r') {
      column = 0;
    } else if (text[at] == '\n') {
      screen.lines.emplace_back();  // the terminal's own "\r\n" has set the column
    } else {
      if (column == static_cast<std::size_t>(columns)) {
        screen.lines.emplace_back();
        ++screen.wrapped;
        column = 0;
      }
      std::string& line = screen.lines.back();
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = text[at];
    }
  }
  return screen;
}

}  // namespace headrace::test
