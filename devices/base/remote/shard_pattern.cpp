#include "headrace/devices/base/remote/shard_pattern.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace::remote {
namespace {

constexpr std::size_t kMaxShards = 100'000;

struct Range {
  std::size_t begin = 0, end = 0;  // of "{...}" in the text
  std::uint64_t first = 0, last = 0;
  std::size_t digits = 0;
};

[[noreturn]] void refuse_pattern(const std::string& url, const std::string& why) {
  throw DataError(ErrorCode::kInvalidArgument, why, {.source = url}, "write it like train-{000..099}.tar");
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::size_t last_part(std::string_view url) { return url.find_last_of('/') + 1; }

bool has_range(std::string_view text) {
  const std::size_t open = text.find('{');
  return open != std::string_view::npos && text.find("..", open) < text.find('}', open) &&
         text.find('}', open) != std::string_view::npos;
}

std::optional<Range> first_range(const std::string& url) {
  Range range;
  range.begin = url.find('{', last_part(url));
  if (range.begin == std::string::npos) return std::nullopt;
  range.end = url.find('}', range.begin) + 1;
  if (range.end == 0) refuse_pattern(url, "has a '{' without its '}'");
  const std::string_view within = std::string_view(url).substr(range.begin + 1, range.end - range.begin - 2);
  const std::size_t dots = within.find("..");
  if (dots == std::string_view::npos) refuse_pattern(url, "has braces without '..' between two numbers");
  const auto first = number_of(within.substr(0, dots)), last = number_of(within.substr(dots + 2));
  if (!first || !last) refuse_pattern(url, fmt::format("'{}' is not two numbers", within));
  if (*last < *first) refuse_pattern(url, fmt::format("'{}' goes down", within));
  if (*last - *first >= kMaxShards)
    refuse_pattern(url, fmt::format("'{}' names more than {} files", within, kMaxShards));
  range.first = *first;
  range.last = *last;
  range.digits = dots;
  return range;
}

}  // namespace

bool is_shard_pattern(const std::string& url) { return has_range(std::string_view(url).substr(last_part(url))); }

bool is_below_shard_pattern(const std::string& url) {
  return has_range(std::string_view(url).substr(0, last_part(url)));
}

std::vector<std::string> expand_shard_pattern(const std::string& url) {
  std::vector<std::string> urls = {url};
  while (const std::optional<Range> range = first_range(urls.front())) {
    std::vector<std::string> more;
    for (const std::string& one : urls) {
      const Range here = *first_range(one);
      for (std::uint64_t i = range->first; i <= range->last; ++i) {
        more.push_back(one.substr(0, here.begin) + fmt::format("{:0{}}", i, range->digits) + one.substr(here.end));
      }
    }
    if (more.size() > kMaxShards) refuse_pattern(url, fmt::format("names more than {} files", kMaxShards));
    urls = std::move(more);
  }
  return urls;
}

}  // namespace headrace::remote
