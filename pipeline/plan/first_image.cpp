#include "headrace/pipeline/plan/first_image.h"

#include <algorithm>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"

namespace headrace {
namespace {

// Returns whether the record is bad for every reader at any time, not just withheld by a busy file server.
bool is_lasting(const Error& error) {
  return error.code() != ErrorCode::kIo && error.code() != ErrorCode::kTimeout &&
         error.code() != ErrorCode::kOutOfMemory && error.code() != ErrorCode::kCancelled;
}

// Returns the size shared by all encoded fields; std::nullopt if they differ.
std::optional<ImageSize> size_of_images(const Fields& fields, const RecordView& record,
                                        const DecodeOptions& options, ImageDecoder& decoder) {
  std::optional<ImageSize> size;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].encoding != Encoding::kImage) continue;
    const ImageSize found = read_shown_size(record.fields[i], options, decoder);
    if (size && *size != found) return std::nullopt;
    size = found;
  }
  return size;
}

}  // namespace

std::optional<DecodeStage> sized_by_first_image(const DecodeStage& stage, const Source& source) {
  if (source.info().streamed) return std::nullopt;
  ImageDecoder decoder;
  std::vector<std::byte> scratch;
  for (std::uint64_t i = 0; i < std::min(source.info().records, kFirstImagesTried); ++i) {
    try {
      const auto size = size_of_images(source.info().fields, source.read(i, scratch), stage.options, decoder);
      if (!size) return std::nullopt;
      DecodeStage sized = stage;
      sized.options.height = size->height;
      sized.options.width = size->width;
      sized.first_image = source.describe(i);
      return sized;
    } catch (const Error& error) {
      if (!is_lasting(error)) throw;
    }
  }
  return std::nullopt;
}

}  // namespace headrace
