// Whether the images that zip() puts side by side have one name.
#pragma once

#include <vector>

#include "headrace/pipeline/sources/combined/joined_source.h"

namespace headrace {

// Throws ConfigError naming the first two files that stand side by side and whose names differ. Names are compared
// without their extensions, and without what all names of a part have in common at either end, in whole words:
// "images/0007" and "0007_mask" are one. Parts whose records are not named as image files are left alone.
// REQUIRES: the parts have equally many records.
void require_paired_names(const std::vector<JoinedPart>& parts);

}  // namespace headrace
