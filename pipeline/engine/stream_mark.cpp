#include "headrace/pipeline/engine/stream_mark.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace headrace {
namespace {

constexpr char kBeforeSteps = ';';

}  // namespace

// "<epoch>/<record>/<the shards' mark>" and, if they are known, ";<the steps>".
std::string StreamMark::to_text(bool with_steps) const {
  std::string mark = fmt::format("{:x}/{:x}/{}", at.epoch, at.record, text);
  const std::string moved = with_steps ? steps_to_text(steps, kMaxMark - std::min(kMaxMark, mark.size())) : "";
  return moved.empty() ? mark : mark + kBeforeSteps + moved;
}

std::optional<StreamMark> parse_stream_mark(std::string_view text) {
  StreamMark mark;
  for (std::uint64_t* const number : {&mark.at.epoch, &mark.at.record}) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number, 16);
    const auto digits = static_cast<std::size_t>(stop - text.data());
    if (error != std::errc() || digits == 0 || digits == text.size() || text[digits] != '/') return std::nullopt;
    text.remove_prefix(digits + 1);
  }
  const std::size_t split = std::min(text.find(kBeforeSteps), text.size());
  mark.text = text.substr(0, split);
  if (mark.text.empty()) return std::nullopt;
  if (split == text.size()) return mark;
  std::optional<ShardSteps> steps = parse_steps(text.substr(split + 1));
  if (!steps) return std::nullopt;
  mark.steps = *std::move(steps);
  return mark;
}

}  // namespace headrace
