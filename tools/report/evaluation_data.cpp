// An evaluation as the data of a page.
#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

#include "headrace/tools/report/page.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kMaxMatrix = 100;  // classes
constexpr std::size_t kMaxPairs = 30;

std::span<const std::uint64_t> row_of(const EvaluationPage& page, std::int64_t label) {
  const auto width = static_cast<std::size_t>(page.classes);
  return std::span(page.confusion).subspan(static_cast<std::size_t>(label) * width, width);
}

std::string class_name_of(const EvaluationPage& page, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  return at < page.names.size() ? page.names[at] : std::to_string(number);
}

// Returns the most frequent confusions as [label, prediction, examples, examples of the label].
nlohmann::json confusions_of(const EvaluationPage& page) {
  struct Pair {
    std::int64_t label = 0, prediction = 0;
    std::uint64_t count = 0;
  };
  std::vector<Pair> pairs;
  for (std::int64_t label = 0; label < page.classes; ++label) {
    for (std::int64_t c = 0; c < page.classes; ++c) {
      const std::uint64_t count = row_of(page, label)[static_cast<std::size_t>(c)];
      if (c != label && count > 0) pairs.push_back({label, c, count});
    }
  }
  std::ranges::sort(pairs, [](const Pair& a, const Pair& b) {
    return std::tuple(b.count, a.label, a.prediction) < std::tuple(a.count, b.label, b.prediction);
  });
  if (pairs.size() > kMaxPairs) pairs.resize(kMaxPairs);
  nlohmann::json list = nlohmann::json::array();
  for (const Pair& pair : pairs) {
    std::uint64_t of = 0;
    for (const std::uint64_t count : row_of(page, pair.label)) of += count;
    list.push_back({class_name_of(page, pair.label), class_name_of(page, pair.prediction), pair.count, of});
  }
  return list;
}

}  // namespace

nlohmann::json evaluation_data(const EvaluationPage& page) {
  nlohmann::json data{{"kind", "evaluation"},
                      {"title", page.title},
                      {"figures", page.figures},
                      {"confusions", confusions_of(page)}};
  if (page.classes <= kMaxMatrix) {
    for (std::int64_t label = 0; label < page.classes; ++label) {
      data["classes"].push_back(class_name_of(page, label));
      data["matrix"].push_back(row_of(page, label));
    }
  }
  data["worst"] = nlohmann::json::array();
  for (const PageExample& one : page.worst) {
    data["worst"].push_back(
        {one.name, class_name_of(page, one.label), class_name_of(page, one.prediction), one.loss});
  }
  return data;
}

}  // namespace headrace::tools
