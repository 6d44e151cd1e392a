// Where a loader stands, in a few bytes: enough to continue anywhere, with other replicas and threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

struct LoaderState {
  std::uint64_t fingerprint = 0;  // of the plan and seed it belongs to, and of what a filter could not judge
  std::uint64_t sequence = 0;     // global batches handed out to every replica

  // One line of text, "headrace-loader-1 <fingerprint> <sequence>".
  std::string serialize() const;
  // Throws ConfigError on anything else.
  static LoaderState parse(std::string_view text);

  bool operator==(const LoaderState&) const = default;
};

}  // namespace headrace
