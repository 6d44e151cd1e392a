// The files beside images that are taken along: a/1.json and a/1.seg.png beside a/1.jpg, or those of a pattern of
// paths, as MemberName says.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/members/member_fields.h"
#include "headrace/pipeline/sources/name_list.h"

namespace headrace {

class Sidecars {
 public:
  static constexpr std::size_t kMissing = ~std::size_t{0};

  // Takes the files with one of these extensions, or of these patterns, out of the paths: an image "1.seg.png" is
  // none of its own. Of equal paths the last one counts.
  Sidecars(NameList& paths, const std::vector<std::string>& extensions);

  // Returns whether the file has one of the extensions.
  static bool is_one(std::string_view path, const std::vector<std::string>& extensions);
  // Returns the path of the file with this extension, or of this pattern, that belongs to an image.
  static std::string path_beside(std::string_view image, std::string_view extension);

  // Returns the position of the file among all paths, those taken included; kMissing if there is none.
  std::size_t find(const std::string& path) const;
  // Returns the position among all paths of one that was left, by its position now.
  std::size_t listed_at(std::size_t path) const { return left_.empty() ? path : left_[path]; }
  // Returns the extensions there, those taken and others, up to a few dozen.
  const std::vector<std::string>& extensions_seen() const noexcept { return seen_; }
  // Returns the files of patterns that belong to no image.
  const std::vector<LeftOut>& unpaired() const noexcept { return unpaired_; }

 private:
  void count_unpaired(const NameList& images, const std::string& pattern);

  std::unordered_map<std::string, std::size_t> files_;
  std::vector<std::size_t> left_;  // positions among all paths; empty: all were left
  std::vector<std::string> seen_;
  std::vector<LeftOut> unpaired_;
};

// Thrown for labels of WebDataset beside images in folders: either may be the class.
class SamplesNotImages : public ConfigError {
 public:
  SamplesNotImages(const std::string& what, const std::string& hint, bool are_all)
      : ConfigError(what, hint), are_all_(are_all) {}
  bool are_all() const noexcept { return are_all_; }  // every image has one beside it

 private:
  bool are_all_;
};
// Throws SamplesNotImages if images have a .cls beside them; in an archive that is being `recognised` also if each
// has a .json. Those among the
// extensions `further` are taken along, and no labels. Not if the layout says where the classes are.
void refuse_samples(const NameList& paths, const std::vector<std::string>& further, const LayoutOptions& layout,
                    const std::string& source, bool recognised);
// Returns the part of a pattern of paths that leads out of its root and up to its first placeholder, "../masks/";
// empty if all its files are below the root.
std::string outer_folder(std::string_view pattern);

// Throws ConfigError if the columns name an image or a label, which are files and folders here.
void refuse_named_columns(const std::filesystem::path& path, const ColumnOptions& columns);

// Ends learning of the fields that files beside images become, and adds these to the source's.
void settle_sidecars(MemberFields& fields, const Sidecars& sidecars, Fingerprint& fingerprint, SourceInfo& info);

}  // namespace headrace
