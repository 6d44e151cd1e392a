// Files that are no data set, or a damaged one, and what each command says of them.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/pipeline/sources/records/tf_fixture.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {

inline void write_sound_inputs(const TempFolder& to) {
  for (const auto& [name, bytes] : make_image_files()) to.write("images/" + name, bytes);
  for (const std::string half : {"train", "t10k"}) {
    to.write("digits/" + half + "-images-idx3-ubyte", make_idx({40, 28, 28}));
    to.write("digits/" + half + "-labels-idx1-ubyte", make_idx_of(8, {40}, {}));
    std::ofstream labels(to / ("digits/" + half + "-labels-idx1-ubyte"), std::ios::binary | std::ios::app);
    for (int i = 0; i < 40; ++i) labels.put(static_cast<char>(i % 10));
  }
  to.write("cache/notes.txt", "no segment");
  to.write("plan.json", "{}");
  to.write("run-whole/history.jsonl", "{\"epoch\":1,\"loss\":0.5}\n");
}

inline void write_odd_nodes(const TempFolder& to) {
  to.write("empty", "");
  to.write("run-torn/history.jsonl", "{\"epoch\":1,\"lo");
  to.write("run-mine/history.jsonl", "{\"epoch\":1,\"loss\":0.5}\n");
  to.write("run-mine/report.html", "notes of my own");
  to.write("poem.txt", "a river runs through it\n");
  to.write("caf\xE9.txt", "a name in Latin-1\n");
  std::filesystem::create_directory(to / "nothing");
  std::filesystem::create_directories(to / "folder.tar/inside");
  std::filesystem::create_directories(to / "folder.csv/inside");
  std::filesystem::create_symlink("loop", to / "loop");
  std::filesystem::create_symlink("away/gone", to / "dangling");
  std::filesystem::create_directory(to / "circle");
  std::filesystem::create_symlink("../circle", to / "circle/again");
  if (::mkfifo((to / "pipe").c_str(), 0600) != 0) throw std::runtime_error("cannot make a FIFO");
  const int door = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, (to / "socket").c_str(), sizeof address.sun_path - 1);
  const int bound = ::bind(door, reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
  ::close(door);
  if (bound != 0) throw std::runtime_error("cannot make a socket");
}

// Where the one who runs it is not root.
inline WrongInputs forbidden_files(const TempFolder& to) {
  namespace fs = std::filesystem;
  to.write("secret.csv", "path,label\nimages/train/cat/0.jpg,1\n");
  fs::permissions(to / "secret.csv", fs::perms::none);
  fs::create_directories(to / "secret/cat");
  fs::permissions(to / "secret", fs::perms::none);
  WrongInputs rows;
  for (const std::string path : {"@secret.csv", "@secret", "@secret/cat"}) {
    rows.push_back({"digest --pipeline jpeg-train --data " + path, 1, "@secret"});
    rows.push_back({"convert --to @new --data " + path, 1, "@secret"});
    rows.push_back({"doctor --data " + path, 1, "@secret"});
    rows.push_back({"cache verify " + path, 1, "@secret"});
  }
  return rows;
}

inline void write_damaged_archives(const TempFolder& to) {
  const Bytes tar = pack_images(make_image_files()).finish();
  ZipBuilder zip;
  for (const auto& [name, bytes] : make_image_files()) zip.add(name, bytes, true);
  to.write("cut.tar", cut_to_percent(tar, 50));
  to.write("cut.tar.gz", cut_to_percent(gzip(tar), 50));
  to.write("cut.tar.zst", cut_to_percent(zstd(tar), 50));
  to.write("cut.zip", cut_to_percent(zip.finish(), 50));
  to.write("flipped.tar.gz", with_flipped_bit(gzip(tar), gzip(tar).size() * 8 - 20));
  to.write("zeros.tar", Bytes(10240));
  to.write("zeros.zip", Bytes(10240));
  to.write("poem.tar", "a river runs through it\n");
  to.write("text.tar", TarBuilder().add("notes/a.txt", to_bytes("no image")).finish());
  to.write("twice.tar", TarBuilder().add("a/b.tar", tar).finish());
  to.write("data.tar.xz", std::string("\xFD"
                                      "7zXZ\0 and more",
                                      15));
  to.write("data.tar.bz2", "BZh91AY&SY and more");
  to.write("data.7z", "7z\xBC\xAF\x27\x1C and more");
  to.write("data.rar", "Rar!\x1A\x07 and more");
  to.write("labels.tar", TarBuilder().add("0.cls", to_bytes("1")).add("1.cls", to_bytes("2")).finish());
  to.write("shards/a-00000-of-00003.tar", tar);
  to.write("shards/a-00002-of-00003.tar", tar);
}

inline void write_damaged_tables(const TempFolder& to) {
  to.write("header.csv", "path,label\n");
  to.write("columns.csv", "file,class\na.jpg,1\n");
  to.write("gone.csv", "path,label\nno/such.jpg,1\n");
  to.write("ragged.csv", "path,label\nimages/train/cat/0.jpg,1,2\n");
  to.write("unlabelled.csv", "path,label\nimages/train/cat/0.jpg,\n");
  to.write("quote.csv", "path,label\n\"images/train/cat/0.jpg,1\n");
  to.write("mixed.csv", "path,label\nimages/train/cat/0.jpg,1\nimages/train/cat/1.jpg,dog\n");
  to.write("huge.csv", "path,label\nimages/train/cat/0.jpg,1e300\nimages/train/cat/1.jpg,0.5\n");
  to.write("folder-in.csv", "path,label\nimages/train,1\n");
  to.write("zeros.csv", Bytes(512));
}

inline void write_damaged_arrays(const TempFolder& to) {
  const Bytes images = make_idx({4, 6, 5}), labels = make_idx({4});
  to.write("idx-cut/train-images-idx3-ubyte", cut_to_percent(images, 60));
  to.write("idx-cut/train-labels-idx1-ubyte", labels);
  to.write("idx-alone/train-images-idx3-ubyte", images);
  to.write("idx-fewer/train-images-idx3-ubyte", images);
  to.write("idx-fewer/train-labels-idx1-ubyte", make_idx({3}));
  to.write("idx-huge/train-images-idx3-ubyte", make_idx_of(8, {}, {255, 255, 255, 255}));
  to.write("idx-huge/train-labels-idx1-ubyte", labels);
  to.write("cifar/data_batch_1.bin", Bytes(3073 * 2 + 17));
  to.write("data_batch_1",
           "\x80\x02}q\x01U\x04"
           "datacnumpy");
  to.write("cut.npy", cut_to_percent(make_npy("|u1", "(4, 6, 5)", Bytes(120)), 80));
  to.write("objects.npy", make_npy("|O", "(4,)", Bytes(32)));
  to.write("shape.npy", make_npy("|u1", "(4, 4294967296, 4294967296)", Bytes(120)));
  to.write("negative.npy", make_npy("|u1", "(-4, 6)", Bytes(24)));
  to.write("header.npy", make_npy("|u1", "(4, 6", Bytes(24)));
  to.write("text.npz", ZipBuilder().add("x.npy", to_bytes("no array")).finish());
  to.write("uneven.npz", ZipBuilder()
                             .add("x.npy", make_npy("|u1", "(2, 3)", Bytes(6)))
                             .add("y.npy", make_npy("|u1", "(3,)", Bytes(3)))
                             .finish());
  const Bytes record = frame(example(
      {entry("image", bytes_feature(make_image_files().begin()->second)), entry("label", packed_feature(1))}));
  to.write("cut.tfrecord", cut_to_percent(record, 70));
  to.write("flipped.tfrecord", with_flipped_bit(record, 20));
  to.write("length.tfrecord", with_flipped_bit(record, 62));
  to.write("empty.tfrecord", frame({}));
}

inline void write_damaged_images(const TempFolder& to) {
  const Bytes image = make_image_files().begin()->second;
  for (const std::string name : {"hollow", "cut-image", "liar"}) {
    for (const std::string one : {"cat", "dog"}) to.write(name + "/train/" + one + "/0.jpg", image);
  }
  to.write("hollow/train/cat/0.jpg", "");
  to.write("cut-image/train/dog/0.jpg", cut_to_percent(image, 60));
  to.write("liar/train/dog/0.jpg", "a poem called a photograph");
  for (const std::string one : {"cat", "dog"}) to.write("all-hollow/train/" + one + "/0.png", "");
  to.write("one-class/train/cat/0.jpg", image);
  to.write("deep/a/b/0.jpg", image);
  to.write("deep/c/0.jpg", image);
  to.write("flat/0.jpg", image);
  to.write("flat/1.jpg", image);
  to.write("other/cat/0.gif", "GIF89a");
  to.write("other/dog/0.webp", "RIFF....WEBP");
  to.write("photograph.jpg", image);
}

// What no command can read, by its path.
inline WrongInputs wrong_files() {
  WrongInputs files = {
      {"@caf\xE9.txt", 1, "caf"},
      {"@data.tar.xz", 1, "xz"},
      {"@data.tar.bz2", 1, "bzip2"},
      {"@shards", 1, "00001"},
      {"@idx-cut", 1, "train-images-idx3-ubyte"},
      {"@idx-huge", 1, "train-images-idx3-ubyte"},
      {"@cifar", 1, "data_batch_1.bin"},
      {"@one-class", 2, "cat"},
      {"@deep", 2, "deep"},
      {"@flat", 2, "flat"},
  };
  std::istringstream named(
      "@missing @missing/below @poem.txt/below @empty @poem.txt @nothing @folder.tar @folder.csv @loop "
      "@dangling @circle @socket /dev/null /dev/zero @cut.tar @cut.tar.gz @cut.tar.zst @cut.zip "
      "@flipped.tar.gz @zeros.tar @zeros.zip @poem.tar @text.tar @twice.tar @data.7z @data.rar "
      "@labels.tar @header.csv @columns.csv @gone.csv @ragged.csv @unlabelled.csv @quote.csv @mixed.csv "
      "@huge.csv @folder-in.csv @zeros.csv @idx-alone @idx-fewer @data_batch_1 @cut.npy @objects.npy "
      "@shape.npy @negative.npy @header.npy @text.npz @uneven.npz @cut.tfrecord @flipped.tfrecord "
      "@length.tfrecord @other @photograph.jpg ");
  for (std::string path; named >> path;) files.push_back({path, 1, path});
  WrongInputs rows;
  for (const WrongInput& file : files) {
    rows.push_back({"digest --pipeline jpeg-train --data " + file.line, file.status, file.words});
    rows.push_back({"convert --to @new --json @new.jsonl --data " + file.line, file.status, file.words});
    rows.push_back({"doctor --data " + file.line, file.status, file.words});
  }
  return rows;
}

// What is found while a run reads its records, and files that are no data sets.
inline WrongInputs wrong_records() {
  return {
      {"digest --pipeline jpeg-train --data @hollow", 1, "0.jpg"},
      {"digest --pipeline jpeg-train --data @cut-image", 1, "0.jpg"},
      {"digest --pipeline jpeg-train --data @liar", 1, "0.jpg"},
      {"digest --pipeline jpeg-train --data @all-hollow", 1, "0.png"},
      {"digest --pipeline jpeg-train --data @all-hollow --on-error skip", 1, ""},
      {"ledger --pipeline jpeg-train --data @hollow --json @new", 1, "0.jpg"},
      {"bench input --pipeline jpeg-train --data @cut-image --seconds 1 --json @new", 1, "0.jpg"},
      {"explain --pipeline jpeg-train --data @liar --seconds 1 --trace @new", 1, "0.jpg"},
      {"convert --to @new --max-side 4 --data @hollow", 1, "0.jpg"},
      {"convert --to @new --quality 50 --data @liar", 1, "0.jpg"},
      {"digest --pipeline jpeg-train --data @empty.tfrecord", 1, "@empty.tfrecord"},
      {"train --recipe cifar10-cnn --data @hollow", 2, "@hollow"},
      {"train --recipe cifar10-cnn --data @cut.tar", 1, "@cut.tar"},
      {"train --recipe cifar10-cnn --data @poem.txt", 1, "@poem.txt"},
      {"train --recipe cifar10-cnn --data @one-class", 2, "cat"},
      {"train --recipe mnist-mlp --data @nothing", 1, "@nothing"},
      {"train --recipe mnist-mlp --data @idx-cut", 1, "@idx-cut"},
      {"train --recipe mnist-mlp --data @missing --run-dir @run --trace @new --json @new.jsonl", 1, "@missing"},
      {"digest --pipeline mnist-train --data @images", 2, ""},
      {"digest --pipeline cifar-train --data @digits", 2, ""},
      {"train --recipe mnist-mlp --data @images", 2, "mnist-mlp"},
      {"train --recipe cifar10-cnn --data @digits", 2, "cifar10-cnn"},
      {"train --recipe mnist-mlp --data @digits --run-dir @poem.txt/run", 1, "@poem.txt"},
      {"digest --pipeline trivial --cache @pipe", 2, "@pipe"},
      {"digest --pipeline jpeg-train --epochs 2 --data @pipe", 2, "@pipe"},
      {"convert --to @new --data @pipe", 2, "@pipe"},
      {"doctor --data @pipe", 2, "@pipe"},
      {"train --recipe cifar10-cnn --data @pipe", 2, "@pipe"},
      {"explain --pipeline jpeg-train --data @images --seconds 0.1 --try-cache @poem.txt", 2, "@poem.txt"},
      {"cache verify @missing", 1, "@missing"},
      {"cache verify @poem.txt", 1, "@poem.txt"},
      {"cache verify @pipe", 1, "@pipe"},
      {"cache verify @loop", 1, "@loop"},
      {"cache inspect /dev/null", 1, "/dev/null"},
      {"cache inspect @images/train/cat/0.jpg", 1, "0.jpg"},
      {"cache inspect @caf\xE9.txt", 1, "caf"},
      {"cache inspect ''", 2, "FOLDER is empty"},
      {"evaluate --record @missing --data @digits", 1, "@missing"},
      {"evaluate --record @nothing --data @digits", 1, "@nothing"},
      {"evaluate --record @empty --data @digits", 1, "@empty"},
      {"evaluate --record @poem.txt --data @digits", 1, "@poem.txt"},
      {"predict --record @pipe --data @digits", 1, "@pipe"},
      {"predict --record /dev/null --data @digits", 1, "/dev/null"},
      {"predict --record @cut.npy --data @digits --json @new", 1, "@cut.npy"},
      {"report @missing", 1, "@missing"},
      {"report @poem.txt", 1, "@poem.txt"},
      {"report @nothing", 1, "@nothing"},
      {"report @images --out @new", 1, "@images"},
      {"report @loop", 1, "@loop"},
      {"report /dev/null", 1, "/dev/null"},
      {"report @pipe", 1, "@pipe"},
      {"report ''", 2, "RUN_DIR is empty"},
      {"report @run-torn --out @new", 1, "history.jsonl"},
      {"report @run-mine", 1, "was not made by headrace report"},
      {"report @run-whole --run 2 --out @new", 1, "there is no run 2"},
      {"report @run-whole --out @no/such/folder", 1, "@no/such"},
  };
}

}  // namespace headrace::test
