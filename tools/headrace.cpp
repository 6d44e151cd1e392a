// The `headrace` command: parses, dispatches, turns errors into one clear line and an exit status.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/signals.h"
#include "headrace/tools/commands.h"

namespace {

constexpr int kRunFailed = 1;
constexpr int kWrongUsage = 2;

int report(const headrace::Error& error) {
  std::fprintf(stderr, "headrace: %s\n", error.message().c_str());
  if (!error.hint().empty()) std::fprintf(stderr, "  hint: %s\n", error.hint().c_str());
  const bool asked_wrongly =
      error.code() == headrace::ErrorCode::kInvalidArgument || error.code() == headrace::ErrorCode::kUnsupported;
  return asked_wrongly ? kWrongUsage : kRunFailed;
}

// `status`, unless what was printed did not arrive.
int end(int status) {
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || status != 0) return status;
  std::fprintf(stderr, "headrace: cannot write to standard output%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return kRunFailed;
}

}  // namespace

int main(int argc, char** argv) {
  headrace::handle_signals();
  CLI::App program("Headrace: an input engine and mirrored trainer that keep every device busy", "headrace");
  program.require_subcommand(1);
  program.set_version_flag("--version", HEADRACE_VERSION);
  headrace::tools::add_train_command(program);
  headrace::tools::add_digest_command(program);
  headrace::tools::add_ledger_command(program);
  headrace::tools::add_bench_command(program);
  headrace::tools::add_explain_command(program);
  headrace::tools::add_cache_command(program);
  headrace::tools::add_convert_command(program);
  headrace::tools::add_doctor_command(program);
  try {
    program.parse(argc, argv);
    return end(0);
  } catch (const CLI::ParseError& error) {
    const int status = program.exit(error);
    return status == 0 ? end(0) : kWrongUsage;
  } catch (const headrace::Error& error) {
    return report(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headrace: %s\n", error.what());
    return kRunFailed;
  }
}
