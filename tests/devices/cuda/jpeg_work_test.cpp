// Pixels from coefficients against libjpeg-turbo's own, on pictures of every sampling and on coefficients at
// random.
#include "headrace/devices/cuda/jpeg_work.h"

#include <jpeglib.h>

#include <cstdlib>
#include <cstring>

#include "headrace/devices/base/rng.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::cuda::jpeg {
namespace {

using test::Bytes;

struct Factors {
  int horizontal, vertical;  // of luma against chroma
};
constexpr Factors kFactors[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};

// An image that libjpeg has open.
class Opened {
 public:
  explicit Opened(const Bytes& file) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.emit_message = [](j_common_ptr, int) {};
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg_, TRUE);
  }
  ~Opened() { jpeg_destroy_decompress(&jpeg_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  jpeg_decompress_struct* operator->() { return &jpeg_; }
  jpeg_decompress_struct* get() { return &jpeg_; }

 private:
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
};

std::vector<std::uint8_t> pixels_of_libjpeg(const Bytes& file) {
  Opened jpeg(file);
  jpeg->out_color_space = jpeg->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(jpeg.get());
  const std::size_t row = std::size_t{jpeg->output_width} * static_cast<std::size_t>(jpeg->output_components);
  std::vector<std::uint8_t> pixels(row * jpeg->output_height);
  while (jpeg->output_scanline < jpeg->output_height) {
    std::uint8_t* to = pixels.data() + row * jpeg->output_scanline;
    jpeg_read_scanlines(jpeg.get(), &to, 1);
  }
  return pixels;
}

// The samples of one component, made of the library's coefficients.
Plane plane_of(Opened& jpeg, jvirt_barray_ptr coefficients, int component, std::vector<std::uint8_t>& samples) {
  const jpeg_component_info& info = jpeg->comp_info[component];
  const std::size_t stride = std::size_t{info.width_in_blocks} * kBlockSide;
  samples.resize(stride * info.height_in_blocks * kBlockSide);
  for (JDIMENSION y = 0; y < info.height_in_blocks; ++y) {
    auto* const common = reinterpret_cast<j_common_ptr>(jpeg.get());
    const JBLOCKARRAY row = (*jpeg->mem->access_virt_barray)(common, coefficients, y, 1, FALSE);
    for (JDIMENSION x = 0; x < info.width_in_blocks; ++x) {
      inverse_dct(row[0][x], info.quant_table->quantval, samples.data() + (y * stride + x) * kBlockSide,
                  static_cast<std::int64_t>(stride));
    }
  }
  const int down = jpeg->max_v_samp_factor / info.v_samp_factor,
            across = jpeg->max_h_samp_factor / info.h_samp_factor;
  const auto part = [](JDIMENSION pixels, int of) { return (static_cast<int>(pixels) + of - 1) / of; };
  return {samples.data(),
          static_cast<std::int64_t>(stride),
          part(jpeg->image_height, down),
          part(jpeg->image_width, across),
          down,
          across};
}

std::vector<std::uint8_t> pixels_of_work(const Bytes& file) {
  Opened jpeg(file);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(jpeg.get());
  std::vector<std::uint8_t> samples[3];
  std::vector<Plane> planes;
  for (int c = 0; c < jpeg->num_components; ++c) planes.push_back(plane_of(jpeg, coefficients[c], c, samples[c]));
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < static_cast<int>(jpeg->image_height); ++y) {
    for (int x = 0; x < static_cast<int>(jpeg->image_width); ++x) {
      if (planes.size() == 1) {
        pixels.push_back(static_cast<std::uint8_t>(planes[0].value(y, x)));
        continue;
      }
      const Rgb pixel = from_ycc(planes[0].value(y, x), planes[1].value(y, x), planes[2].value(y, x));
      pixels.insert(pixels.end(), {pixel.red, pixel.green, pixel.blue});
    }
  }
  return pixels;
}

// A file of coefficients and quantisers at random, up to the largest of each.
Bytes random_file(int height, int width, Factors factors, std::uint64_t seed) {
  Philox random({.seed = seed});
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  errors.emit_message = [](j_common_ptr, int) {};
  jpeg_create_compress(&jpeg);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &data, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg.comp_info[0].h_samp_factor = factors.horizontal;
  jpeg.comp_info[0].v_samp_factor = factors.vertical;
  for (int table = 0; table < 2; ++table) {
    for (UINT16& value : jpeg.quant_tbl_ptrs[table]->quantval) {
      value = static_cast<UINT16>(1 + random.below(random.below(3) > 0 ? 255 : 65535));
    }
  }
  auto* const common = reinterpret_cast<j_common_ptr>(&jpeg);
  const auto blocks = [](int pixels, int factor, int of) {
    return static_cast<JDIMENSION>((pixels + 8 * factor - 1) / (8 * factor) * of);
  };
  jvirt_barray_ptr arrays[3];
  for (int c = 0; c < 3; ++c) {
    const jpeg_component_info& info = jpeg.comp_info[c];
    arrays[c] = (*jpeg.mem->request_virt_barray)(
        common, JPOOL_IMAGE, TRUE, blocks(width, factors.horizontal, info.h_samp_factor),
        blocks(height, factors.vertical, info.v_samp_factor), static_cast<JDIMENSION>(info.v_samp_factor));
  }
  jpeg_write_coefficients(&jpeg, arrays);
  const auto coefficient = [&] { return static_cast<JCOEF>(static_cast<int>(random.below(2047)) - 1023); };
  for (int c = 0; c < 3; ++c) {
    const jpeg_component_info& info = jpeg.comp_info[c];
    for (JDIMENSION y = 0; y < blocks(height, factors.vertical, info.v_samp_factor); ++y) {
      const JBLOCKARRAY row = (*jpeg.mem->access_virt_barray)(common, arrays[c], y, 1, TRUE);
      for (JDIMENSION x = 0; x < blocks(width, factors.horizontal, info.h_samp_factor); ++x) {
        std::fill_n(row[0][x], kBlockValues, JCOEF{0});
        // None but the first, those of the first row, and all: each is a way of its own through the library.
        const std::uint32_t ends[] = {1, 8, 8, 64, 64};
        const std::uint32_t end = ends[random.below(5)];
        for (std::uint32_t k = 0; k < end; ++k) {
          if (k == 0 || random.below(4) == 0) row[0][x][k] = coefficient();
        }
      }
    }
  }
  jpeg_finish_compress(&jpeg);
  Bytes file(size);
  std::memcpy(file.data(), data, size);
  std::free(data);
  jpeg_destroy_compress(&jpeg);
  return file;
}

TEST(JpegWork, PicturesHaveLibjpegsPixels) {
  for (const Factors factors : kFactors) {
    for (const int channels : {1, 3}) {
      for (const int height : {1, 2, 3, 7, 8, 9, 16, 17, 33}) {
        for (const int width : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33}) {
          const auto seed = static_cast<std::uint64_t>(100 * height + width);
          const test::JpegOptions options{
              .quality = 75, .horizontal = factors.horizontal, .vertical = factors.vertical};
          const Bytes file = encode_jpeg(test::make_picture(height, width, channels, seed), options);
          ASSERT_EQ(pixels_of_work(file), pixels_of_libjpeg(file))
              << factors.horizontal << " x " << factors.vertical << ", " << height << " x " << width;
        }
      }
    }
  }
}

TEST(JpegWork, CoefficientsOfAnySizeHaveLibjpegsPixels) {
  for (const Factors factors : kFactors) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Bytes file =
          random_file(17 + static_cast<int>(seed % 9), 33 - static_cast<int>(seed % 7), factors, seed);
      ASSERT_EQ(pixels_of_work(file), pixels_of_libjpeg(file)) << seed;
    }
  }
}

}  // namespace
}  // namespace headrace::cuda::jpeg
