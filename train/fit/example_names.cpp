#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/source.h"
#include "headrace/train/evaluator.h"

namespace headrace {
namespace {

// Returns the number of the record's class among those of the net; nothing if the source does not know it or the
// net has no such class.
std::optional<std::int64_t> label_in_net(const Source& source, std::uint64_t record,
                                         const std::vector<std::string>& net_classes) {
  const std::optional<std::int64_t> label = source.label(record);
  const std::vector<std::string>& classes = source.info().classes;
  if (!label || net_classes.empty() || classes == net_classes) return label;
  if (*label < 0 || static_cast<std::size_t>(*label) >= classes.size()) return std::nullopt;
  const auto found = std::ranges::find(net_classes, classes[static_cast<std::size_t>(*label)]);
  return found == net_classes.end() ? std::nullopt : std::optional(found - net_classes.begin());
}

}  // namespace

ExampleNames name_examples(const std::vector<std::uint64_t>& records, const Source& source,
                           const std::vector<std::string>& net_classes) {
  ExampleNames all;
  all.names.reserve(records.size());
  all.labels.reserve(records.size());
  for (const std::uint64_t record : records) {
    all.names.push_back(source.describe(record));
    all.labels.push_back(label_in_net(source, record, net_classes));
  }
  return all;
}

}  // namespace headrace
