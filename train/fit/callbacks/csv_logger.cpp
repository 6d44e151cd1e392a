// Writes one line of comma-separated values per epoch.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "headrace/devices/base/file.h"
#include "headrace/train/fit/callbacks/monitor.h"

namespace headrace {
namespace {

class CsvLogger {
 public:
  explicit CsvLogger(std::filesystem::path path) : path_(std::move(path)) {}

  // A resumed fit continues after the lines it had written by then.
  void begin() {
    std::string kept;
    if (std::exchange(restored_, false)) {
      kept = first_lines(lines_);
    } else {
      names_.clear();
      lines_ = 0;
    }
    write_file_atomically(path_, kept);
  }

  // The columns are those of the first epoch; a value missing from an epoch is empty.
  void end_epoch(const EpochReport& report) {
    const auto values = epoch_values(report);
    std::string text;
    if (names_.empty()) {
      text += "epoch";
      for (const auto& [name, value] : values) {
        names_.push_back(name);
        text += fmt::format(",{}", quoted(name));
      }
      text += "\n";
      ++lines_;
    }
    text += fmt::format("{}", report.epoch + 1);
    for (const std::string& name : names_) {
      const auto found = std::ranges::find(values, name, &std::pair<std::string, double>::first);
      text += found == values.end() ? "," : fmt::format(",{}", found->second);
    }
    append_to_file(path_, fmt::format("{}\n", text));
    ++lines_;
  }

  std::string save() const { return nlohmann::json{{"names", names_}, {"lines", lines_}}.dump(); }

  void restore(const std::string& text) {
    read_callback_state("csv_logger", text, [&](const nlohmann::json& state) {
      names_ = state.at("names").get<std::vector<std::string>>();
      lines_ = state.at("lines").get<std::size_t>();
    });
    restored_ = true;
  }

 private:
  static std::string quoted(const std::string& name) {
    if (name.find_first_of(",\"\n") == std::string::npos) return name;
    std::string text;
    for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
    return fmt::format("\"{}\"", text);
  }

  std::string first_lines(std::size_t count) const {
    if (path_kind(path_) != PathKind::kFile) return {};
    const std::vector<std::byte> bytes = read_whole_file(path_);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t end = 0;
    for (std::size_t line = 0; line < count && end != std::string::npos; ++line) {
      end = text.find('\n', end);
      if (end != std::string::npos) ++end;
    }
    return text.substr(0, end);
  }

  std::filesystem::path path_;
  std::vector<std::string> names_;  // of the columns after the epoch's
  std::size_t lines_ = 0;           // written so far, the names' included
  bool restored_ = false;           // since the last fit
};

}  // namespace

Callback csv_logger(const std::filesystem::path& path) {
  const auto self = std::make_shared<CsvLogger>(path);
  return on_chief({.name = "csv_logger",
                   .on_train_begin = [self](FitControl&) { self->begin(); },
                   .on_epoch_end = [self](const EpochReport& report, FitControl&) { self->end_epoch(report); },
                   .save = [self] { return self->save(); },
                   .restore = [self](const std::string& text) { self->restore(text); }});
}

}  // namespace headrace
