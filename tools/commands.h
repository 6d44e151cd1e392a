// The subcommands of `headrace`. Each adds itself to the program; its callback does the work and throws Error.
#pragma once

#include <cstdint>
#include <filesystem>

#include "headrace/pipeline/sources.h"
#include "headrace/tools/output/json_lines.h"

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
void add_index_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_doctor_command(CLI::App& program);
void add_shell_command(CLI::App& program);

// The options of `headrace doctor --data`.
struct DataDoctorOptions {
  std::filesystem::path data = {};
  LayoutOptions layout = {};
  ColumnOptions columns = {};
  std::uint64_t examine = 10'000;  // records of each split, evenly spread; 0: all
};

// Prints kind, splits, classes with their counts, sizes, what was left out and the first bad records. Throws as
// open_source() does if no split can be opened.
void diagnose_data(const DataDoctorOptions& options, JsonLines& json);

}  // namespace headrace::tools
