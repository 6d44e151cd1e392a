// One dataset out of several. They may be sharded, shuffled, filtered, repeated and themselves combined, but are
// combined before decode() and map(): those are done to the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"

namespace headrace {

// Each of these throws ConfigError where no dataset is given, where one has stages that belong after the
// combination, and, but for zip(), where fields or class names differ. Records of the result are numbered part
// after part, so that random operations treat equal records of two parts differently.

// One after the other. Every record of each once in an epoch.
Dataset concatenate(const std::vector<Dataset>& parts);

struct InterleaveOptions {
  std::uint64_t block = 1;  // records of one dataset before the next one's turn
};
// In turn; one that has ended is passed over. Every record of each once in an epoch.
Dataset interleave(const std::vector<Dataset>& parts, InterleaveOptions options = {});

enum class MixEnd {
  kFirstEnds,  // the epoch ends where the first dataset would have to start anew: every record at most once
  kAllSeen,    // when every dataset was given whole: every record at least once, smaller datasets start anew
};

struct MixOptions {
  // How often each dataset has its turn, relative to the others. Empty: as often as it has records, so that the
  // epoch has every record of each exactly once, and `end` does not matter.
  std::vector<double> weights = {};
  std::uint64_t seed = 0;  // mixed with the loader's seed
  MixEnd end = MixEnd::kFirstEnds;
};
// A random merge that keeps each dataset's order, another one every epoch. The proportions are exact over the
// epoch, not only expected: of an epoch of L records, L * weight / sum, rounded, are a dataset's.
Dataset mix(const std::vector<Dataset>& parts, MixOptions options = {});

struct ZipOptions {
  // Added to the names of fields that occur in several datasets, one suffix a dataset. Empty: that is an error.
  std::vector<std::string> suffixes = {};
};
// Record i has the fields of every dataset's record i; it ends with the shortest. No dataset may be shuffled:
// shuffle the result. Those that are filtered are counted now. What a filter could not judge is bad, and with it
// the record that has its fields.
Dataset zip(const std::vector<Dataset>& parts, ZipOptions options = {});

}  // namespace headrace
