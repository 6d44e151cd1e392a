// The values of a member that are classes, numbered as labels are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/pipeline/sources/fingerprint.h"

namespace headrace {

class MemberClasses {
 public:
  void add(std::string name) { numbers_.try_emplace(std::move(name), 0); }
  bool empty() const noexcept { return numbers_.empty(); }

  // Numbers the names: integers in numeric order if all are, else in bytewise order.
  void settle();
  // Returns nothing for a name that was not added. REQUIRES: settled.
  std::optional<std::int64_t> number_of(std::string_view name) const;
  void add_to(Fingerprint& fingerprint) const;

 private:
  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

}  // namespace headrace
