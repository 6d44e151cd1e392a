#include "headrace/tools/report/evaluation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "headrace/tools/report/page.h"
#include "headrace/tools/report/page_style.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kMaxMatrix = 100;  // classes
constexpr std::size_t kMaxPairs = 30;

std::string class_name_of(const EvaluationPage& page, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  return xml_text(at < page.names.size() ? page.names[at] : std::to_string(number));
}

std::uint64_t count_at(const EvaluationPage& page, std::int64_t label, std::int64_t prediction) {
  return page.confusion[static_cast<std::size_t>(label * page.classes + prediction)];
}

std::uint64_t examples_of(const EvaluationPage& page, std::int64_t label) {
  std::uint64_t sum = 0;
  for (std::int64_t prediction = 0; prediction < page.classes; ++prediction)
    sum += count_at(page, label, prediction);
  return sum;
}

// Right and wrong differ in colour, shares of a class's examples in its strength.
std::string cell(std::uint64_t count, std::uint64_t of, bool right) {
  if (count == 0) return "<td></td>";
  const double share = static_cast<double>(count) / static_cast<double>(of);
  return fmt::format("<td style=\"background: color-mix(in srgb, var(--{}) {:.0f}%, transparent)\">{}</td>",
                     right ? "c2" : "c1", 12 + 63 * std::sqrt(share), count);
}

std::string matrix(const EvaluationPage& page) {
  if (page.classes > kMaxMatrix) return "";
  std::string text = "<div class=\"scroll\"><table class=\"matrix\">\n<thead><tr><th>label \\ prediction</th>";
  for (std::int64_t c = 0; c < page.classes; ++c) text += "<th>" + class_name_of(page, c) + "</th>";
  text += "<th>recall</th></tr></thead>\n<tbody>\n";
  for (std::int64_t label = 0; label < page.classes; ++label) {
    const std::uint64_t all = examples_of(page, label);
    text += "<tr><th>" + class_name_of(page, label) + "</th>";
    for (std::int64_t c = 0; c < page.classes; ++c) text += cell(count_at(page, label, c), all, c == label);
    text += all == 0
                ? "<td></td></tr>\n"
                : fmt::format("<td>{:.0f}%</td></tr>\n",
                              100 * static_cast<double>(count_at(page, label, label)) / static_cast<double>(all));
  }
  return text + "</tbody></table></div>\n";
}

struct Pair {
  std::int64_t label = 0, prediction = 0;
  std::uint64_t count = 0;
};

std::vector<Pair> confused_pairs(const EvaluationPage& page) {
  std::vector<Pair> pairs;
  for (std::int64_t label = 0; label < page.classes; ++label) {
    for (std::int64_t c = 0; c < page.classes; ++c) {
      if (c != label && count_at(page, label, c) > 0) pairs.push_back({label, c, count_at(page, label, c)});
    }
  }
  std::ranges::sort(pairs, [](const Pair& a, const Pair& b) {
    return std::tuple(b.count, a.label, a.prediction) < std::tuple(a.count, b.label, b.prediction);
  });
  if (pairs.size() > kMaxPairs) pairs.resize(kMaxPairs);
  return pairs;
}

std::string pair_table(const EvaluationPage& page) {
  const std::vector<Pair> pairs = confused_pairs(page);
  if (pairs.empty()) return "<p>None.</p>\n";
  std::string text = "<table><tr><th>label</th><th>taken for</th><th>examples</th><th>of</th></tr>\n";
  for (const Pair& pair : pairs) {
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", class_name_of(page, pair.label),
                        class_name_of(page, pair.prediction), pair.count, examples_of(page, pair.label));
  }
  return text + "</table>\n";
}

std::string worst_table(const EvaluationPage& page) {
  std::string text = "<table><tr><th>example</th><th>label</th><th>prediction</th><th>cross-entropy</th></tr>\n";
  for (const PageExample& one : page.worst) {
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.4f}</td></tr>\n", xml_text(one.name),
                        class_name_of(page, one.label), class_name_of(page, one.prediction), one.loss);
  }
  return text + "</table>\n";
}

std::string cards(const EvaluationPage& page) {
  std::string text = "<div class=\"cards\">\n";
  for (const auto& [name, value] : page.figures) {
    text += "<div class=\"card\"><b>" + xml_text(value) + "</b><span>" + xml_text(name) + "</span></div>\n";
  }
  return text + "</div>\n";
}

}  // namespace

std::string make_evaluation_page(const EvaluationPage& page) {
  const std::string drawn = matrix(page);
  return std::string(kReportBegin) +
         "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         xml_text(page.title) + "</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<h1>" +
         xml_text(page.title) + "</h1>\n" + cards(page) +
         (drawn.empty() ? "" : "<section>\n<h2>Confusion matrix</h2>\n" + drawn + "</section>\n") +
         "<section>\n<h2>Most frequent confusions</h2>\n" + pair_table(page) +
         "</section>\n<section>\n<h2>Examples with the highest loss</h2>\n" + worst_table(page) +
         "</section>\n</body>\n</html>\n";
}

}  // namespace headrace::tools
