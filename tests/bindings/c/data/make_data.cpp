// Eight pictures of two classes in every form that the C interface opens, and some that are damaged.
//   c_interface_data FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {
namespace {

constexpr int kPictures = 8;

Bytes picture(int number) { return encode_png(make_picture(12, 10, 3, static_cast<std::uint64_t>(number))); }

int label(int number) { return number % 2; }

class Folder {
 public:
  explicit Folder(std::filesystem::path root) : root_(std::move(root)) {}

  void write(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path root_;
};

void write_pictures(const Folder& folder) {
  TarBuilder classes, samples;
  Bytes records;
  std::string csv = "file,class,number\n";
  for (int i = 0; i < kPictures; ++i) {
    const Bytes image = picture(i);
    const std::string name = "00" + std::to_string(i);
    const std::string in_class = (label(i) == 0 ? "cat/" : "dog/") + name + ".png";
    folder.write("folder/" + in_class, image);
    classes.add(in_class, image);
    samples.add(name + ".png", image).add(name + ".cls", to_bytes(std::to_string(label(i))));
    append(records,
           frame(example({entry("pixels", bytes_feature(image)), entry("kind", packed_feature(label(i)))})));
    csv += "folder/" + in_class + "," + std::to_string(label(i)) + "," + std::to_string(i) + ".5\n";
    folder.write("damaged/" + in_class, i == 3 ? Bytes(image.begin(), image.begin() + 60) : image);
  }
  folder.write("images.tar", classes.finish());
  folder.write("shards/train-0.tar", samples.finish());
  folder.write("records/train-0.tfrecord", records);
  folder.write("list.csv", to_bytes(csv));
}

void write_arrays(const Folder& folder) {
  folder.write("idx/train-images-idx3-ubyte", make_idx({8, 28, 28}));
  folder.write("idx/train-labels-idx1-ubyte", make_idx({8}));
  const Bytes pixels(8 * 4), labels(8 * 8);
  folder.write("numpy/x_train.npy", make_npy("|u1", "(8, 2, 2)", pixels));
  folder.write("numpy/y_train.npy", make_npy("<i8", "(8,)", labels));
  const Bytes cifar_record(3073);
  for (int i = 1; i <= 5; ++i) folder.write("cifar/data_batch_" + std::to_string(i) + ".bin", cifar_record);
  folder.write("cifar/test_batch.bin", cifar_record);
}

}  // namespace
}  // namespace headrace::test

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::remove_all(argv[1]);
  const headrace::test::Folder folder(argv[1]);
  headrace::test::write_pictures(folder);
  headrace::test::write_arrays(folder);
  return 0;
}
