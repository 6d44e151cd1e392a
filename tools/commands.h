// The subcommands of `headrace`. Each adds itself to the program; its callback does the work and throws Error.
#pragma once

namespace CLI {
class App;
}

namespace headrace::tools {

void add_train_command(CLI::App& program);
void add_evaluate_command(CLI::App& program);
void add_predict_command(CLI::App& program);
void add_digest_command(CLI::App& program);
void add_ledger_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_explain_command(CLI::App& program);
void add_cache_command(CLI::App& program);
void add_convert_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_doctor_command(CLI::App& program);
void add_shell_command(CLI::App& program);

}  // namespace headrace::tools
