#include "headrace/devices/cuda/math/plan_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/text.h"

namespace headrace::cuda {
namespace {

constexpr float kClear = 1.02F;  // smaller differences are noise: the order of preference decides

}  // namespace

std::optional<Determinism> named_determinism() {
  const char* variable = std::getenv("HEADRACE_CUDA_MATH");
  const std::string word = variable == nullptr ? "" : variable;
  if (word.empty()) return std::nullopt;
  if (word == "default") return Determinism::kDefault;
  if (word == "tuned") return Determinism::kTuned;
  if (word == "fastest") return Determinism::kFastest;
  throw ConfigError("HEADRACE_CUDA_MATH is '" + word + "'", "it must be default, tuned or fastest");
}

std::optional<float> median_time(const PlanCandidate& candidate) {
  if (candidate.milliseconds.empty()) return std::nullopt;
  std::vector<float> times = candidate.milliseconds;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::size_t choose_plan(std::span<const PlanCandidate> candidates) {
  std::optional<float> fastest;
  for (const PlanCandidate& candidate : candidates) {
    const std::optional<float> time = median_time(candidate);
    if (time && (!fastest || *time < *fastest)) fastest = time;
  }
  if (!fastest) return 0;
  const auto chosen = std::ranges::find_if(candidates, [&](const PlanCandidate& candidate) {
    const std::optional<float> time = median_time(candidate);
    return time && *time <= *fastest * kClear;
  });
  return static_cast<std::size_t>(chosen - candidates.begin());
}

std::string describe_choice(std::span<const PlanCandidate> candidates, std::size_t chosen) {
  const std::optional<float> time = median_time(candidates[chosen]), first = median_time(candidates.front());
  std::string text = fmt::format("proposal {} of {}, ", chosen + 1, candidates.size());
  text += time ? fmt::format("{:.3f} ms", *time) : "not timed";
  if (chosen != 0) text += first ? fmt::format(", the first takes {:.3f} ms", *first) : ", the first did not run";
  return text + fmt::format(", workspace {:.1f} MiB",
                            static_cast<double>(candidates[chosen].workspace_bytes) / (1 << 20));
}

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

namespace {

constexpr const char* kNameAFolder = "name a folder that can be written in HEADRACE_CUDA_PLAN_FOLDER";

std::string name_of(const std::filesystem::path& path) { return printable(path.native()); }

// Creates the folder. Returns why it does not exist; empty if it does.
std::string make_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return "neither HOME nor XDG_CACHE_HOME is set";
  try {
    make_folders(folder);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_not_locked(const FolderLock& lock, const std::filesystem::path& folder) {
  if (lock.held()) return {};
  return lock.is_anothers() ? "another process holds the lock on " + name_of(folder)
                            : "there are no locks on " + name_of(folder);
}

}  // namespace

PlanStore::PlanStore(std::filesystem::path folder, Say say, std::chrono::milliseconds patience)
    : folder_(std::move(folder)), say_(std::move(say)), patience_(patience) {}

PlanStore::Choice PlanStore::settle(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(target, problem);
  const auto standing = standing_.find(key);
  if (standing != standing_.end() && offer.has(standing->second)) {
    return {.plan = standing->second, .how = "as chosen before"};
  }
  const std::filesystem::path file = plan_file_path(folder_, target);
  const std::optional<std::string> found = find(file, target, problem, offer);
  Choice choice =
      found ? Choice{.plan = *found, .how = "kept in " + name_of(file)} : measure(target, problem, offer);
  if (!choice.plan.empty()) standing_[key] = choice.plan;
  return choice;
}

std::optional<std::string> PlanStore::find(const std::filesystem::path& file, const PlanTarget& target,
                                           const PlanProblem& problem, PlanOffer& offer) {
  if (folder_.empty()) return std::nullopt;
  PlanFile kept = read_plan_file(file);
  if (kept.trouble.empty() && !kept.plans.empty() && kept.target != target) {
    kept = {.target = {}, .plans = {}, .trouble = "its plans are those of " + to_string(kept.target)};
  }
  if (!kept.trouble.empty()) {
    remark(fmt::format("{} is not used: {}; plans are measured anew", name_of(file), printable(kept.trouble)));
  }
  const auto found = kept.plans.find(problem);
  if (found == kept.plans.end()) return std::nullopt;
  if (offer.has(found->second)) return found->second;
  remark(fmt::format("{} does not offer the plan {} of {} for {}; it is chosen anew", target.library,
                     printable(found->second), name_of(file), problem.text));
  return std::nullopt;
}

PlanStore::Choice PlanStore::measure(const PlanTarget& target, const PlanProblem& problem, PlanOffer& offer) {
  const std::filesystem::path file = plan_file_path(folder_, target);
  const bool repeats = problem.determinism != Determinism::kFastest;
  std::string trouble = unwritable_.empty() ? make_folder(folder_) : unwritable_;
  std::optional<FolderLock> lock;
  if (trouble.empty()) {
    lock.emplace(folder_, patience_);
    trouble = why_not_locked(*lock, folder_);
    const std::optional<std::string> found = find(file, target, problem, offer);  // by the lock's last holder
    if (found) return {.plan = *found, .how = "kept in " + name_of(file)};
  }
  std::vector<PlanCandidate> candidates;
  std::size_t chosen = 0;
  if (trouble.empty() || !repeats) {
    candidates = offer.measure();
    if (candidates.empty()) return {.plan = {}, .how = "there is none"};
    chosen = choose_plan(candidates);
    const bool is_choice = candidates.size() == 1 || median_time(candidates[chosen]);
    if (!is_choice) {
      remark("no convolution plan could be timed, perhaps for a lack of GPU memory: the first ones are taken");
      return {.plan = offer.first(), .how = "the first, since none could be timed"};
    }
    if (trouble.empty()) trouble = keep(file, target, problem, candidates[chosen].name);
  }
  if (trouble.empty() || !repeats) {
    if (!trouble.empty()) say_unkept(trouble, "those that are fastest now");
    return {.plan = candidates[chosen].name, .how = describe_choice(candidates, chosen)};
  }
  say_unkept(trouble, target.library + "'s first ones, whose bits repeat,");
  return {.plan = offer.first(), .how = "the first, since no choice can be kept"};
}

void PlanStore::say_unkept(const std::string& trouble, const std::string& taken) {
  remark(fmt::format("the choice of convolution plans cannot be kept ({}): {} are taken; {}", printable(trouble),
                     taken, kNameAFolder));
}

std::string PlanStore::keep(const std::filesystem::path& file, const PlanTarget& target,
                            const PlanProblem& problem, const std::string& plan) {
  PlanFile kept = read_plan_file(file);
  if (kept.target != target) kept.plans.clear();
  kept.plans[problem] = plan;
  try {
    const std::string text = plan_file_text(target, kept.plans);
    FileWriter writer(file, Appears::kWhole, Links::kReplaced);
    writer.append(std::as_bytes(std::span(text)));
    writer.commit(Durability::kLater);
    return {};
  } catch (const Error& error) {
    return unwritable_ = error.what();
  }
}

void PlanStore::remark(const std::string& text) {
  if (said_.insert(text).second) say_(text);
}

Finding PlanStore::describe() const {
  Finding finding{.name = "convolution plans", .found = true, .version = "none kept yet", .hint = {}};
  if (folder_.empty()) return {.name = finding.name, .found = false, .version = {}, .hint = kNameAFolder};
  if (path_kind(folder_) != PathKind::kDirectory) return finding;
  std::string kept;
  try {
    for (const DirectoryEntry& entry : list_directory(folder_)) {
      if (entry.is_directory || entry.path.extension() != ".plans") continue;
      const PlanFile file = read_plan_file(entry.path);
      if (!kept.empty()) kept += "; ";
      kept += file.trouble.empty() ? fmt::format("{} for {}", file.plans.size(), printable(to_string(file.target)))
                                   : fmt::format("{}: {}", name_of(entry.path), printable(file.trouble));
    }
  } catch (const Error& error) {
    return {.name = finding.name, .found = false, .version = {}, .hint = error.what()};
  }
  if (kept.empty()) return finding;
  finding.version = kept;
  finding.hint = "remove " + name_of(folder_) + " to have them measured anew";
  return finding;
}

std::filesystem::path plan_folder() { return cache_folder("HEADRACE_CUDA_PLAN_FOLDER", "cuda_plans"); }

}  // namespace headrace::cuda
