// A run as the data of its report: of what its files hold only numbers and texts of known names, the timeline
// thinned.
#include <algorithm>
#include <array>
#include <span>

#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/page.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxSamples = 300;  // of the timeline: no chart has more pixels for them
constexpr std::array kWaits{"input_stall_fraction", "exposed_copy_fraction", "device_idle_fraction",
                            "sync_wait_fraction"};

// Returns a named member; null if there is none.
const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

// Returns the numbers of an object, null for those that are not finite, and its texts of these names.
nlohmann::json drawable(const nlohmann::json& object, const std::vector<const char*>& texts = {}) {
  nlohmann::json figures = nlohmann::json::object();
  if (object.is_object()) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_number() || value.is_null()) figures[key] = number_of(value) ? value : nlohmann::json();
    }
  }
  for (const char* key : texts) figures[key] = text_at(object, key);
  return figures;
}

nlohmann::json drawable_list(const nlohmann::json& list, const std::vector<const char*>& texts = {}) {
  nlohmann::json all = nlohmann::json::array();
  if (!list.is_array()) return all;
  for (const nlohmann::json& one : list) all.push_back(drawable(one, texts));
  return all;
}

// Returns the epochs' lines; the shares of the workers in the last one alone.
nlohmann::json epochs_of(const TrainingLines& training) {
  nlohmann::json epochs = nlohmann::json::array();
  for (const nlohmann::json& line : training.epochs) {
    nlohmann::json epoch = drawable(line);
    if (const nlohmann::json& rates = member(line, "learning_rates"); rates.is_array()) {
      epoch["learning_rates"] = nlohmann::json::array();
      for (const nlohmann::json& rate : rates) {
        if (number_of(rate)) epoch["learning_rates"].push_back(rate);
      }
    } else {
      epoch.erase("learning_rates");
    }
    if (&line == &training.epochs.back()) epoch["workers"] = drawable_list(member(line, "workers"));
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

double length_of(const nlohmann::json& line) {
  return *number_at(line, "end_seconds") - *number_at(line, "begin_seconds");
}

// Returns the mean over the time of the lines that have such a figure.
std::optional<double> mean_of(std::span<const nlohmann::json> lines, const char* key) {
  double sum = 0, seconds = 0;
  for (const nlohmann::json& line : lines) {
    if (const auto value = number_at(line, key)) {
      sum += *value * length_of(line);
      seconds += length_of(line);
    }
  }
  return seconds > 0 ? std::optional(sum / seconds) : std::nullopt;
}

nlohmann::json sample_of(std::span<const nlohmann::json> lines) {
  nlohmann::json sample{{"begin", *number_at(lines.front(), "begin_seconds")},
                        {"end", *number_at(lines.back(), "end_seconds")}};
  if (const auto rate = mean_of(lines, "examples_per_second")) sample["rate"] = *rate;
  for (const char* key : kWaits) {
    sample["shares"].push_back(std::clamp(mean_of(lines, key).value_or(0), 0.0, 1.0));
  }
  return sample;
}

nlohmann::json timeline_of(std::vector<nlohmann::json> lines) {
  std::ranges::stable_sort(lines, {},
                           [](const nlohmann::json& line) { return *number_at(line, "begin_seconds"); });
  const std::size_t samples = std::min(lines.size(), kMaxSamples);
  nlohmann::json timeline = nlohmann::json::array();
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t begin = i * lines.size() / samples, end = (i + 1) * lines.size() / samples;
    timeline.push_back(sample_of(std::span(lines).subspan(begin, end - begin)));
  }
  return timeline;
}

// Returns the part of the time in which the devices stood still, and in which they waited for input; null if
// nothing was sampled.
nlohmann::json standstill_of(const std::vector<nlohmann::json>& timeline) {
  double still = 0, stalled = 0, seconds = 0;
  for (const nlohmann::json& line : timeline) {
    double share = 0;
    for (const char* key : kWaits) share += std::clamp(number_at(line, key).value_or(0), 0.0, 1.0);
    still += length_of(line) * std::min(1.0, share);
    stalled += length_of(line) * std::clamp(number_at(line, kWaits.front()).value_or(0), 0.0, 1.0);
    seconds += length_of(line);
  }
  if (seconds <= 0) return nullptr;
  return {{"still", still / seconds}, {"stalled", stalled / seconds}};
}

// Returns what the input engine counted, and its verdict.
nlohmann::json input_of(const nlohmann::json& input) {
  const nlohmann::json& verdict = member(input, "verdict");
  nlohmann::json what_ifs = nlohmann::json::array();
  for (const nlohmann::json& what_if : drawable_list(member(verdict, "what_ifs"), {"sentence"})) {
    if (what_if["sentence"] != "") what_ifs.push_back(what_if["sentence"]);
  }
  return {{"examples", number_at(input, "examples").value_or(0)},
          {"stages", drawable_list(member(input, "stages"), {"name", "stage_kind"})},
          {"bottleneck", text_at(verdict, "bottleneck")},
          {"verdict", text_at(verdict, "sentence")},
          {"summary", text_at(input, "summary")},
          {"what_ifs", std::move(what_ifs)}};
}

// Returns the run's status, derived if the run has not recorded it.
std::string status_of(const RunReading& run) {
  const std::string status = text_at(run.run, "status");
  if (!status.empty()) return status;
  if (run.going_on) return "still running";
  if (!run.trainings.back().final.is_null()) return "finished";
  return run.run.is_null() ? "end not known" : "cut off";
}

// Returns missing and damaged files, and warnings.
std::vector<std::string> notes_of(const RunReading& run) {
  std::vector<std::string> notes = run.notes;
  if (text_at(run.run, "status").empty() && !run.run.is_null() && !run.going_on) {
    notes.emplace_back("the run did not write its end: it was killed, or the machine went down");
  }
  for (const nlohmann::json& warning : member(run.run, "warnings")) {
    if (warning.is_string()) notes.push_back(warning.get<std::string>());
  }
  return notes;
}

// Returns the texts of a list, repeated ones once.
std::string joined(const nlohmann::json& list) {
  std::string text, last;
  for (const nlohmann::json& one : list) {
    if (!one.is_string() || one == last) continue;
    last = one.get<std::string>();
    text += (text.empty() ? "" : "; ") + last;
  }
  return text;
}

// Returns a number as it was written; an empty text if there is none.
std::string exact(const nlohmann::json& object, const char* key) {
  return number_at(object, key) ? object[key].dump() : "";
}

// Returns what was run, and on what, as [name, value]; a value that is a number is a duration in seconds.
nlohmann::json facts_of(const RunReading& run) {
  const nlohmann::json &about = run.run, &end = run.trainings.back().final;
  nlohmann::json facts = nlohmann::json::array();
  const auto add = [&facts](const char* name, const nlohmann::json& value) {
    if (value != "") facts.push_back({name, value});
  };
  for (const auto& [name, key] : {std::pair{"command", "command"},
                                  {"in folder", "directory"},
                                  {"recipe", "recipe"},
                                  {"data", "data"},
                                  {"devices", "devices"}}) {
    add(name, text_at(about, key));
  }
  add("that is", joined(member(about, "device_descriptions")));
  add("replicas", exact(about, "replicas"));
  add("precision", text_at(about, "precision"));
  add("global batch", exact(about, "global_batch"));
  add("seed", exact(about, "seed"));
  add("epochs planned", exact(about, "epochs"));
  add("Headrace", text_at(about, "headrace"));
  add("started", text_at(about, "started"));
  add("ended", text_at(about, "ended"));
  if (const auto seconds = number_at(about, "seconds")) add("took", *seconds);
  add("steps", exact(end, "steps"));
  add("weights' SHA-256", text_at(end, "weights_sha256"));
  add("run folder", run.folder.string());
  return facts;
}

}  // namespace

nlohmann::json run_data(const RunReading& run, const std::string& others) {
  const std::string recipe = text_at(run.run, "recipe");
  nlohmann::json ends = nlohmann::json::array(), about = nlohmann::json::array();
  for (const TrainingLines& training : run.trainings) {
    ends.push_back(drawable(training.final));
    if (const std::string seed = exact(training.final, "seed"); !seed.empty()) ends.back()["seed"] = seed;
  }
  for (const char* key : {"devices", "data", "started"}) {
    if (const std::string text = text_at(run.run, key); !text.empty()) about.push_back(text);
  }
  return {{"kind", "run"},
          {"title", (recipe.empty() ? "a run of headrace train" : recipe) + ": " + status_of(run)},
          {"about", std::move(about)},
          {"reason", text_at(run.run, "reason")},
          {"notes", notes_of(run)},
          {"ends", std::move(ends)},
          {"epochs", epochs_of(run.trainings.back())},
          {"timeline", timeline_of(run.timeline)},
          {"standstill", standstill_of(run.timeline)},
          {"input", input_of(run.input)},
          {"facts", facts_of(run)},
          {"others", others},
          {"model", run.model},
          {"plan", run.plan}};
}

}  // namespace headrace::tools
