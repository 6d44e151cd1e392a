#include "headrace/train/engine/cluster_environment.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

struct Launcher {
  const char* variable;
  const char* name;
};
constexpr std::array kLaunchers = {Launcher{.variable = "WORLD_SIZE", .name = "torchrun"},
                                   Launcher{.variable = "OMPI_COMM_WORLD_SIZE", .name = "mpirun"},
                                   Launcher{.variable = "PMI_SIZE", .name = "mpiexec"},
                                   Launcher{.variable = "SLURM_NTASKS", .name = "Slurm"}};

[[noreturn]] void unreadable(const char* variable, const char* value) {
  throw ConfigError(fmt::format("{} is '{}', which says nothing about the workers of this run", variable, value),
                    fmt::format("unset {}, or have the launcher set it", variable));
}

std::int64_t count_of(const Launcher& launcher, const char* value) {
  std::int64_t count = 0;
  const char* const end = value + std::strlen(value);
  const auto [rest, error] = std::from_chars(value, end, count);
  if (error != std::errc() || rest != end || count < 1) unreadable(launcher.variable, value);
  return count;
}

// {"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {...}}; without a cluster it is one process.
std::int64_t count_of_tf_config(const char* text) {
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) unreadable("TF_CONFIG", text);
  if (!config.contains("cluster")) return 1;
  const nlohmann::json& cluster = config["cluster"];
  if (!cluster.is_object()) unreadable("TF_CONFIG", text);
  std::int64_t count = 0;
  for (const char* job : {"chief", "worker", "ps"}) {
    if (!cluster.contains(job)) continue;
    if (!cluster[job].is_array()) unreadable("TF_CONFIG", text);
    count += static_cast<std::int64_t>(cluster[job].size());
  }
  return count;
}

}  // namespace

std::optional<ClusterPlace> cluster_place(const Environment& environment) {
  if (const char* text = environment("TF_CONFIG"); text != nullptr && *text != '\0') {
    if (const std::int64_t count = count_of_tf_config(text); count > 1) {
      return ClusterPlace{.workers = count, .said_by = "TF_CONFIG"};
    }
  }
  for (const Launcher& launcher : kLaunchers) {
    const char* value = environment(launcher.variable);
    if (value == nullptr || *value == '\0') continue;
    if (const std::int64_t count = count_of(launcher, value); count > 1) {
      return ClusterPlace{.workers = count, .said_by = fmt::format("{}, of {}", launcher.variable, launcher.name)};
    }
  }
  return std::nullopt;
}

void refuse_to_train_alone(const Environment& environment) {
  const std::optional<ClusterPlace> place = cluster_place(environment);
  if (!place) return;
  throw ConfigError(
      fmt::format("this process is one of {} workers ({}), and training over several workers is not supported "
                  "yet: it would train alone",
                  place->workers, place->said_by),
      joined({"start one process", advice("say {} if that is meant", named("StrategyOptions::standalone"))}));
}

}  // namespace headrace
