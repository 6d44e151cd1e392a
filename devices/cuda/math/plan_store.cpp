#include "headrace/devices/cuda/math/plan_store.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/text.h"

namespace headrace::cuda {
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

std::filesystem::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

std::filesystem::path plan_folder() {
  const std::filesystem::path named = environment_path("HEADRACE_CUDA_PLAN_FOLDER");
  if (!named.empty()) return named;
  std::filesystem::path cache = environment_path("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // see the XDG specification
    const std::filesystem::path home = environment_path("HOME");
    if (home.empty()) return {};
    cache = home / ".cache";
  }
  return cache / "headrace" / "cuda_plans";
}

}  // namespace headrace::cuda
