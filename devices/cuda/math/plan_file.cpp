#include "headrace/devices/cuda/math/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"

namespace headrace::cuda {
namespace {

constexpr std::string_view kTitle = "headrace-plans\t1";
constexpr std::string_view kChecksum = "checksum\t";
constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;

struct Word {
  Determinism determinism;
  std::string_view text;
};
constexpr std::array kWords{Word{Determinism::kTuned, "tuned"}, Word{Determinism::kFastest, "fastest"}};

std::string_view word_of(Determinism determinism) {
  return std::ranges::find(kWords, determinism, &Word::determinism)->text;
}

// Returns the GPU's name in a form for file names.
std::string file_word(std::string text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.';
  };
  for (char& c : text) c = plain(c) ? c : '_';
  return text;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads one line of the body. Returns false if it is invalid.
bool take_line(std::string_view line, PlanFile& file) {
  const std::vector<std::string_view> parts = split(line, '\t');
  if (parts.size() == 3) {
    const auto word = std::ranges::find(kWords, parts[0], &Word::text);
    if (word == kWords.end() || parts[1].empty()) return false;
    const PlanProblem problem{.determinism = word->determinism, .text = std::string(parts[2])};
    return file.plans.emplace(problem, parts[1]).second;
  }
  if (parts.size() != 2) return false;
  const std::string value(parts[1]);
  if (parts[0] == "gpu") return (file.target.gpu = value, true);
  if (parts[0] == "compute_capability") return (file.target.compute_capability = value, true);
  if (parts[0] == "library") return (file.target.library = value, true);
  const char* end = value.data() + value.size();
  return parts[0] == "multiprocessors" &&
         std::from_chars(value.data(), end, file.target.multiprocessors).ptr == end;
}

PlanFile unusable(std::string trouble) { return {.target = {}, .plans = {}, .trouble = std::move(trouble)}; }

}  // namespace

std::string to_string(const PlanTarget& target) {
  std::string sm = target.compute_capability;
  std::erase(sm, '.');
  return fmt::format("{}, sm_{}, {} multiprocessors, {}", target.gpu, sm, target.multiprocessors, target.library);
}

std::filesystem::path plan_file_path(const std::filesystem::path& folder, const PlanTarget& target) {
  return folder / file_word(fmt::format("{}-sm_{}-{}-{}.plans", target.gpu, target.compute_capability,
                                        target.multiprocessors, target.library));
}

std::string plan_file_text(const PlanTarget& target, const ChosenPlans& plans) {
  std::string text = fmt::format("{}\ngpu\t{}\ncompute_capability\t{}\nmultiprocessors\t{}\nlibrary\t{}\n", kTitle,
                                 target.gpu, target.compute_capability, target.multiprocessors, target.library);
  for (const auto& [problem, plan] : plans) {
    text += fmt::format("{}\t{}\t{}\n", word_of(problem.determinism), plan, problem.text);
  }
  return text + fmt::format("{}{}\n", kChecksum, to_hex(xxh3(text)));
}

PlanFile parse_plan_file(std::string_view text) {
  if (!text.starts_with(std::string(kTitle) + "\n"))
    return unusable("it is no file of plans, or of another version");
  const std::size_t checksum = text.rfind(kChecksum);
  if (checksum == std::string_view::npos || text[checksum - 1] != '\n') return unusable("its end is missing");
  const std::string_view body = text.substr(0, checksum);
  if (text.substr(checksum) != fmt::format("{}{}\n", kChecksum, to_hex(xxh3(body)))) {
    return unusable("its checksum is wrong");
  }
  PlanFile file;
  std::vector<std::string_view> lines = split(body, '\n');
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    if (!take_line(lines[i], file)) return unusable(fmt::format("line {} is none of its format", i + 1));
  }
  return file;
}

PlanFile read_plan_file(const std::filesystem::path& path) {
  try {
    const std::vector<std::byte> bytes = read_whole_file(path, kMaxBytes);
    return parse_plan_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    return error.code() == ErrorCode::kNotFound ? PlanFile{} : unusable(error.what());
  }
}

}  // namespace headrace::cuda
