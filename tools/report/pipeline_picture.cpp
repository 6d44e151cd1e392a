#include "headrace/tools/report/pipeline_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <vector>

#include "headrace/devices/base/text.h"
#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

constexpr int kBoxWidth = 166, kBoxHeight = 132, kArrow = 24;
constexpr std::size_t kNameLine = 21, kNameLines = 2;  // letters and lines that fit into a box

struct Stage {
  std::string name, kind;
  double threads = 1, items = 0, ns_per_item = 0, occupancy = 0, wait_p50_us = 0, wait_p99_us = 0;
  bool limits = false;

  // Examples a second that its threads could take if they did nothing else; 0: it had nothing to do.
  double rate() const { return ns_per_item > 0 ? threads * 1e9 / ns_per_item : 0; }
  // Its stages share threads.
  bool computes() const { return kind == "decode" || kind == "operate"; }
};

Stage stage_of(const nlohmann::json& line, const std::string& bottleneck) {
  Stage stage{.name = text_at(line, "name"),
              .kind = text_at(line, "stage_kind"),
              .threads = number_at(line, "threads").value_or(1),
              .items = number_at(line, "items").value_or(0),
              .ns_per_item = number_at(line, "ns_per_item").value_or(0),
              .occupancy = number_at(line, "occupancy").value_or(0),
              .wait_p50_us = number_at(line, "wait_p50_us").value_or(0),
              .wait_p99_us = number_at(line, "wait_p99_us").value_or(0)};
  stage.limits = stage.name == bottleneck;
  return stage;
}

// A letter is what one UTF-8 sequence encodes.
std::size_t letters_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string first_letters(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && count-- == 0) break;
  }
  return text.substr(0, end);
}

// Broken between words where a line is full; the rest is left out.
std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> lines{""};
  std::istringstream words(name);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    const bool fits = line.empty() || letters_of(line) + 1 + letters_of(word) <= kNameLine;
    if (fits) {
      if (!line.empty()) line += ' ';
      line += word;
    } else {
      lines.push_back(word);
    }
  }
  const bool cut = lines.size() > kNameLines;
  if (cut) lines.resize(kNameLines);
  for (std::string& line : lines) {
    if (letters_of(line) > kNameLine) line = first_letters(line, kNameLine - 1) + "…";
  }
  if (cut && !lines.back().ends_with("…")) lines.back() = first_letters(lines.back(), kNameLine - 1) + "…";
  return lines;
}

std::string in_words(const Stage& stage) {
  const std::string rate = stage.rate() > 0 ? short_number(stage.rate()) + " examples/s alone" : "nothing to do";
  return fmt::format(
      "{}: {}; {} examples went through it, {} each; busy {}; its threads waited {} at the median, {} at the 99th "
      "percentile{}",
      stage.name, rate, with_commas(static_cast<std::uint64_t>(stage.items)), nanoseconds_text(stage.ns_per_item),
      percent(stage.occupancy), nanoseconds_text(1e3 * stage.wait_p50_us),
      nanoseconds_text(1e3 * stage.wait_p99_us), stage.limits ? "; this stage limits the training" : "");
}

std::string threads_text(double threads) {
  return fmt::format("{:.0f} {}", threads, threads == 1 ? "thread" : "threads");
}

std::string row_of(int y, const char* style, const std::string& text) {
  return fmt::format(R"(<text class="{}" x="12" y="{}">{}</text>)", style, y, xml_text(text));
}

std::string draw_stage(const Stage& stage, bool last) {
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" class="stage" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img"><title>{2}</title><rect class="box{3}" x="2" y="2" width="{4}" height="{5}" rx="8"/>)",
      kBoxWidth + (last ? 0 : kArrow), kBoxHeight, xml_text(in_words(stage)), stage.limits ? " limit" : "",
      kBoxWidth - 4, kBoxHeight - 4);
  int y = 22;
  for (const std::string& line : lines_of(stage.name)) svg += row_of(y, "stage-name", line), y += 15;
  svg += row_of(70, "rate", stage.rate() > 0 ? short_number(stage.rate()) + "/s" : "no work");
  svg += row_of(87, "tick", nanoseconds_text(stage.ns_per_item) + " an example");
  svg += row_of(103, "tick", "busy " + percent(stage.occupancy) + ", " + threads_text(stage.threads));
  const double bar = kBoxWidth - 24, busy = std::clamp(stage.occupancy, 0.0, 1.0);
  svg += fmt::format(
      R"(<rect class="bar" x="12" y="110" width="{0:.1f}" height="8" rx="2"/><rect class="busy{1}" x="12" y="110" width="{2:.1f}" height="8" rx="2"/>)",
      bar, stage.limits ? " limit" : "", bar * busy);
  if (stage.limits) {
    svg +=
        fmt::format(R"(<text class="limit-name" x="{}" y="70" text-anchor="end">limits</text>)", kBoxWidth - 12);
  }
  if (!last) {
    svg += fmt::format(R"(<path class="arrow" d="M{0},{2}H{1}m-6,-5l6,5l-6,5"/>)", kBoxWidth + 2,
                       kBoxWidth + kArrow - 3, kBoxHeight / 2);
  }
  return svg + "</svg>\n";
}

// Stages that share threads take turns: together they are as fast as the sum of their times allows.
std::string shared_text(const std::vector<Stage>& stages, double delivered) {
  double busy_ns = 0;
  for (const Stage& stage : stages) busy_ns += stage.items * stage.ns_per_item;
  const std::string threads = threads_text(stages.front().threads) + " for these stages";
  if (busy_ns <= 0 || delivered <= 0) return threads;
  return threads + ": together " + short_number(stages.front().threads * 1e9 * delivered / busy_ns) + "/s";
}

}  // namespace

std::string draw_pipeline(const nlohmann::json& input) {
  const auto lines = input.find("stages");
  if (lines == input.end() || !lines->is_array() || lines->empty()) return "";
  const std::string bottleneck =
      input.contains("verdict") ? text_at(input["verdict"], "bottleneck") : std::string();
  std::vector<Stage> stages;
  for (const nlohmann::json& line : *lines) stages.push_back(stage_of(line, bottleneck));
  const double delivered = number_at(input, "examples").value_or(0);

  std::string html = "<div class=\"pipeline\">\n";
  for (std::size_t i = 0; i < stages.size();) {
    const auto begin = stages.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = std::find_if_not(begin, stages.end(), [](const Stage& stage) { return stage.computes(); });
    const std::vector<Stage> shared(begin, end);
    if (shared.size() > 1)
      html += "<div class=\"shared\"><p>" + xml_text(shared_text(shared, delivered)) + "</p>\n";
    const std::size_t stop = i + std::max<std::size_t>(1, shared.size());
    for (; i < stop; ++i) html += draw_stage(stages[i], i + 1 == stages.size());
    if (shared.size() > 1) html += "</div>\n";
  }
  return html + "</div>\n";
}

}  // namespace headrace::tools
