#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers.h"

namespace headrace {
namespace {

// Matches greedily from star to star: if the rest does not fit, the last star takes one more character.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, after_star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string joined_rules(const std::vector<VariableRule>& rules, const char* by) {
  std::string text;
  for (const VariableRule& rule : rules) text += (text.empty() ? "" : by) + rule.to_string();
  return rules.size() > 1 ? "(" + text + ")" : text;
}

}  // namespace

VariableRule VariableRule::named(std::string pattern) {
  VariableRule rule(Test::kName);
  rule.pattern_ = std::move(pattern);
  return rule;
}

VariableRule VariableRule::of_kind(std::string pattern) {
  VariableRule rule(Test::kKind);
  rule.pattern_ = std::move(pattern);
  return rule;
}

VariableRule VariableRule::of_rank(int rank) {
  if (rank < 0) throw ConfigError(fmt::format("no variable has {} axes", rank));
  VariableRule rule(Test::kRank);
  rule.rank_ = rank;
  return rule;
}

VariableRule VariableRule::all_of(std::vector<VariableRule> rules) {
  VariableRule rule(Test::kAll);
  rule.rules_ = std::move(rules);
  return rule;
}

VariableRule VariableRule::any_of(std::vector<VariableRule> rules) {
  VariableRule rule(Test::kAny);
  rule.rules_ = std::move(rules);
  return rule;
}

VariableRule operator!(VariableRule rule) {
  VariableRule opposite(VariableRule::Test::kNot);
  opposite.rules_ = {std::move(rule)};
  return opposite;
}

bool VariableRule::takes(const TrainedVariable& variable) const {
  const auto takes_it = [&](const VariableRule& rule) { return rule.takes(variable); };
  switch (test_) {
    case Test::kName: return matches(pattern_, variable.name);
    case Test::kKind: return matches(pattern_, variable.kind);
    case Test::kRank: return variable.shape.rank() == rank_;
    case Test::kAll: return std::ranges::all_of(rules_, takes_it);
    case Test::kAny: return std::ranges::any_of(rules_, takes_it);
    case Test::kNot: return !rules_.front().takes(variable);
  }
  return false;
}

std::string VariableRule::to_string() const {
  switch (test_) {
    case Test::kName: return "name '" + pattern_ + "'";
    case Test::kKind: return "kind '" + pattern_ + "'";
    case Test::kRank: return fmt::format("rank {}", rank_);
    case Test::kAll: return rules_.empty() ? "anything" : joined_rules(rules_, " and ");
    case Test::kAny: return rules_.empty() ? "nothing" : joined_rules(rules_, " or ");
    case Test::kNot: return "not " + rules_.front().to_string();
  }
  return {};
}

bool VariableRule::operator==(const VariableRule& other) const noexcept {
  return test_ == other.test_ && pattern_ == other.pattern_ && rank_ == other.rank_ && rules_ == other.rules_;
}

}  // namespace headrace
