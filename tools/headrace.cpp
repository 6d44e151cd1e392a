// The `headrace` command: parses, dispatches, turns errors into one clear line and an exit status.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/signals.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/command_line.h"
#include "headrace/tools/output/print.h"

namespace {

using headrace::tools::kRunFailed;
using headrace::tools::kWrongUsage;
using headrace::tools::print;

// ": did you mean 'X'?" for a file that is not there, unless the message says it itself.
std::string meant(const headrace::Error& error) {
  const auto* data = dynamic_cast<const headrace::DataError*>(&error);
  if (data == nullptr || error.code() != headrace::ErrorCode::kNotFound) return {};
  return error.message().find("did you mean") == std::string::npos
             ? headrace::did_you_mean_path(data->location().source)
             : std::string();
}

int report(const headrace::Error& error) {
  print(stderr, "headrace: {}{}\n", error.message(), meant(error));
  if (!error.hint().empty()) print(stderr, "  hint: {}\n", error.hint());
  return headrace::tools::exit_status(error);
}

// `status`, unless what was printed did not arrive.
int end(int status) {
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || status != 0) return status;
  print(stderr, "headrace: cannot write to standard output{}{}\n", errno != 0 ? ": " : "",
        errno != 0 ? std::strerror(errno) : "");
  return kRunFailed;
}

// Help, the version, or options that do not go together.
int report_usage(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    program.exit(error);
    return end(0);
  }
  std::string text = error.what();  // "--runs excludes --trace", "--examine requires --data"
  const std::string_view excludes = " excludes ";
  if (const auto at = text.find(excludes); at != std::string::npos) {
    text.replace(at, excludes.size(), " cannot be given together with ");
  }
  print(stderr, "headrace: {}\n", text);
  return kWrongUsage;
}

}  // namespace

int main(int argc, char** argv) {
  headrace::handle_signals();
  CLI::App program("Headrace: an input engine and mirrored trainer that keep every device busy", "headrace");
  program.formatter(std::make_shared<headrace::tools::HelpText>());
  program.set_help_flag("-h,--help", "show this help");
  program.set_version_flag("--version", HEADRACE_VERSION, "show the version");
  headrace::tools::add_train_command(program);
  headrace::tools::add_evaluate_command(program);
  headrace::tools::add_predict_command(program);
  headrace::tools::add_digest_command(program);
  headrace::tools::add_ledger_command(program);
  headrace::tools::add_bench_command(program);
  headrace::tools::add_explain_command(program);
  headrace::tools::add_cache_command(program);
  headrace::tools::add_convert_command(program);
  headrace::tools::add_index_command(program);
  headrace::tools::add_report_command(program);
  headrace::tools::add_doctor_command(program);
  headrace::tools::add_shell_command(program);
  headrace::tools::add_standalone_option(program);
  for (CLI::App* command : program.get_subcommands({})) {
    if (!command->get_group().empty()) command->group("Commands");
    for (CLI::App* below : command->get_subcommands({})) below->group("Commands");
  }
  headrace::tools::speak_command(program);
  try {
    headrace::tools::check_usage(program, argc, argv);
    program.parse(argc, argv);
    return end(0);
  } catch (const CLI::ParseError& error) {
    return report_usage(program, error);
  } catch (const headrace::Error& error) {
    return report(error);
  } catch (const std::exception& error) {
    if (headrace::is_bare_refusal(error)) return report(headrace::explain_refusal(error, "this command"));
    print(stderr, "headrace: {}\n", error.what());
    return kRunFailed;
  }
}
