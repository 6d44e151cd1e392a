// Values that no option takes, and options that do not go together.
#pragma once

#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {

inline WrongInputs wrong_usage() {
  const std::string commands =
      "\n  hint: there are: train, evaluate, predict, digest, ledger, bench, explain, cache, convert, index, "
      "report, "
      "doctor\n";
  const std::string help = "\n  hint: headrace digest --help shows what there is\n";
  return {
      {"", 2, "headrace needs a command" + commands},
      {"trian", 2, "unknown command 'trian': did you mean 'train'?" + commands},
      {"alchemy", 2, "unknown command 'alchemy'" + commands},
      {"bench inptu", 2, "unknown command 'bench inptu': did you mean 'input'?\n  hint: there are: input\n"},
      {"cache verfy", 2,
       "unknown command 'cache verfy': did you mean 'verify'?\n  hint: there are: inspect, verify\n"},
      {"cache verify", 2, "headrace cache verify needs FOLDER\n  hint: the cache's folder\n"},
      {"--hlep", 2,
       "unknown option '--hlep': did you mean '--help'?\n  hint: headrace --help shows what there is\n"},
      {"digest --pipline trivial", 2, "unknown option '--pipline': did you mean '--pipeline'?" + help},
      {"digest --pipeline trivial --batch-size 3", 2,
       "unknown option '--batch-size': did you mean '--global-batch'?" + help},
      {"digest --pipeline trivial --num-workers 3", 2,
       "unknown option '--num-workers': did you mean '--threads'?" + help},
      {"digest --pipeline trivial --nonsense", 2, "unknown option '--nonsense'" + help},
      {"digest --pipeline trivial --seed", 2, "--seed needs a value" + help},
      {"digest --pipeline trivial --seed --epochs 2", 2, "--seed needs a value, but --epochs follows it" + help},
      {"digest --pipeline trivial --seed 1 --seed 2", 2, "--seed is given twice\n  hint: give it once\n"},
      {"digest --pipeline trivial extra", 2, "unexpected argument 'extra'" + help},
      {"ledger --pipeline trivial --check=1", 2, "--check takes no value\n  hint: give it alone\n"},
      {"doctor --examine 3", 2, "--examine requires --data\n"},
      {"train --recipe mnist-mlp --any-order --deterministic", 2,
       "--deterministic cannot be given together with --any-order\n"},
      {"digest --pipeline trivial --any-order", 2, "unknown option '--any-order'" + help},
      {"train --recipe mnist-mlp --runs 2 --trace x", 2, "--runs cannot be given together with --trace\n"},
  };
}

inline WrongInputs mistyped_paths() {
  return {
      {"train --recipe mnist-mlp --data '@not there'", 1, "@not there"},
      {"digest --pipeline cifar-train --data '@not there'", 1, "@not there"},
      {"digest --pipeline jpeg-train --data @imagse/train", 1,
       "there is no such file or folder: did you mean '@images/train'?"},
      {"digest --plan @plan.jsn", 1, ": did you mean '@plan.json'?"},
      {"report @run-whloe", 1, ": did you mean '@run-whole'?"},
      {"digest --pipeline trivial --cache @cache/notes.txt", 2, "is not a folder"},
      {"doctor --json @no/such/file.json", 1, "@no/such/file.json"},
  };
}

// What is said of the limit that a number is beyond.
inline WrongInputs wrong_numbers() {
  const std::string digest = "digest --pipeline trivial ", train = "train --recipe mnist-mlp ";
  WrongInputs rows = {
      {digest + "--seed -1", 2, "--seed -1: must be a whole number from 0 to 18446744073709551615\n"},
      {digest + "--seed 18446744073709551616", 2,
       "--seed 18446744073709551616: is too large: the maximum is 18446744073709551615\n"},
      {digest + "--seed 1.5", 2, "--seed 1.5: must be a whole number"},
      {digest + "--seed 12abc", 2, "--seed 12abc: is not a number"},
      {digest + "--start-step -1", 2, "--start-step -1: must be at least 0"},
      {digest + "--start-step 9223372036854775808", 2, "--start-step 9223372036854775808: must be between"},
      {digest + "--start-step 1000000", 2, "--start-step 1000000 is past the end"},
      {digest + "--epochs 0", 2, "--epochs 0: must be at least 1\n"},
      {digest + "--epochs=0", 2, "--epochs 0: must be at least 1\n"},
      {digest + "--epochs 4294967297", 2, "--epochs 4294967297: must be between"},
      {digest + "--epochs 99999999999999999999", 2, "--epochs 99999999999999999999: is too large"},
      {digest + "--threads -1", 2, "--threads -1: must be between 0 and 1024\n"},
      {digest + "--threads 100000", 2, "--threads 100000: must be between 0 and 1024"},
      {digest + "--threads 4294967297", 2, "--threads 4294967297: is too large: the maximum is 1024"},
      {digest + "--threads 99999999999", 2, "--threads 99999999999: is too large: the maximum is 1024\n"},
      {digest + "--prefetch 1025", 2, "--prefetch 1025: must be between 0 and 1024"},
      {digest + "--prefetch 2000", 2, "--prefetch 2000: must be between 0 and 1024\n"},
      {digest + "--prefetch -1", 2, "--prefetch -1: must be between 0 and 1024\n"},
      {digest + "--replicas 1000000", 2, "--replicas 1000000: must be between 1 and 1023"},
      {digest + "--global-batch 0", 2, "--global-batch 0: must be at least 1"},
      {digest + "--global-batch 9223372036854775808", 2, "--global-batch 9223372036854775808: is too large"},
      {digest + "--global-batch -5", 2, "--global-batch -5: must be at least 1"},
      {digest + "--global-batch 12x", 2, "--global-batch 12x: is not a number\n"},
      {digest + "--global-batch ''", 2, "--global-batch '': is not a number\n"},
      {digest + "--global-batch 1.5", 2, "--global-batch 1.5: must be a whole number\n"},
      {digest + "--max-bad-share 2", 2, "--max-bad-share 2: must be between 0 and 1\n"},
      {digest + "--max-bad-share nan", 2, "--max-bad-share nan: is not a number\n"},
  };
  for (const std::string option :
       {"--steps-per-epoch", "--stop-after-steps", "--headspace", "--accumulate", "--runs"}) {
    for (const std::string value : {"-1", "99999999999999999999"}) {
      const std::string given = option + " " + value;
      rows.push_back({train + given, 2, given + ": "});
    }
  }
  return rows;
}

// An option that takes a number, with `more` wrong values of its own beside those that are no number of its kind.
struct NumberOption {
  std::string command, option;
  std::vector<std::string> more;
};

inline WrongInputs wrong_integers() {
  const std::string digest = "digest --pipeline trivial", train = "train --recipe mnist-mlp --data @digits";
  const std::string convert = "convert --data @images --to @new";
  const std::vector<NumberOption> options = {
      {digest, "--replicas", {"0", "9223372036854775807"}},
      {digest, "--global-batch", {"0"}},
      {digest, "--epochs", {"0"}},
      {digest, "--seed", {}},
      {digest, "--threads", {"2147483647"}},
      {digest, "--prefetch", {"1025"}},
      {digest, "--readers", {"1025"}},
      {digest, "--cpu-budget", {"1025"}},
      {train, "--readers", {"1025"}},
      {train, "--cpu-budget", {"1025"}},
      {digest, "--start-step", {}},
      {"explain --pipeline trivial", "--consumer-us", {}},
      {train, "--steps-per-epoch", {}},
      {train, "--stop-after-steps", {}},
      {train, "--headspace", {}},
      {train, "--runs", {"0"}},
      {train, "--profile-epoch", {"0"}},
      {train, "--accumulate", {"0"}},
      {train, "--verbose", {"3"}},
      {train + " --checkpoint-dir @new", "--checkpoint-every", {}},
      {train + " --checkpoint-dir @new", "--checkpoint-keep", {}},
      {convert, "--max-side", {"0", "65501"}},
      {convert, "--quality", {"0", "101"}},
      {convert, "--threads", {}},
      {"doctor --data @images", "--examine", {}},
      {"evaluate --record @poem.txt --data @digits", "--global-batch", {"0"}},
      {"predict --record @poem.txt --data @digits", "--threads", {"1025"}},
      {"report @run-whole", "--run", {"0"}},
  };
  WrongInputs rows;
  for (const NumberOption& one : options) {
    std::vector<std::string> values = {"many", "-1", "1.5", "1e30", "nan", "18446744073709551616", "''", "7x"};
    values.insert(values.end(), one.more.begin(), one.more.end());
    for (const std::string& value : values) {
      rows.push_back({one.command + " " + one.option + " " + value, 2, one.option});
    }
  }
  return rows;
}

inline WrongInputs wrong_fractions() {
  const std::vector<NumberOption> options = {
      {"digest --pipeline trivial", "--max-bad-share", {"1.01"}},
      {"bench input --pipeline trivial", "--seconds", {"0", "1e30"}},
      {"explain --pipeline trivial", "--seconds", {"0", "1e30"}},
  };
  WrongInputs rows;
  for (const NumberOption& one : options) {
    std::vector<std::string> values = {"some", "-0.1", "nan", "inf", "1e400", "''", "50%", "0,5"};
    values.insert(values.end(), one.more.begin(), one.more.end());
    for (const std::string& value : values) {
      rows.push_back({one.command + " " + one.option + " " + value, 2, one.option});
    }
  }
  return rows;
}

inline WrongInputs wrong_sizes() {
  WrongInputs rows;
  for (const std::string command :
       {"digest --pipeline trivial", "ledger --pipeline trivial", "bench input --pipeline trivial",
        "explain --pipeline trivial", "train --recipe mnist-mlp --data @digits"}) {
    for (const std::string option : {"--memory-budget", "--pinned-budget"}) {
      for (const std::string value : {"''", "G", "2X", "2GB", "-1", "1.5G", "0x10", "nan", "16777216T"}) {
        rows.push_back({command + " " + option + " " + value, 2, option});
      }
    }
  }
  return rows;
}

inline WrongInputs wrong_choices() {
  const std::string digest = "digest --pipeline trivial ", train = "train --data @digits --recipe ";
  return {
      {"digest --pipeline ''", 2, "trivial"},
      {"ledger --pipeline TRIVIAL", 2, "TRIVIAL"},
      {"bench input --pipeline trivial,jpeg-train", 2, "trivial,jpeg-train"},
      {"explain --pipeline @images", 2, "@images"},
      {"digest --pipeline pipe-dream", 2, "cifar-train"},
      {"digest --pipeline trivail", 2,
       "--pipeline trivail is unknown: did you mean 'trivial'?\n  hint: must be cifar-eval, cifar-train, "
       "fashion-train, jpeg-eval, jpeg-train, jpeg-train-float, mnist-train, skewed or trivial\n"},
      {digest + "--on-error skp", 2, "--on-error skp: must be fail, skip or substitute: did you mean 'skip'?\n"},
      {digest + "--on-error ignore", 2, "--on-error"},
      {digest + "--on-error Skip", 2, "--on-error"},
      {digest + "--on-error ''", 2, "--on-error"},
      {digest + "--convert gpu", 2, "--convert"},
      {digest + "--convert moon", 2, "--convert"},
      {digest + "--convert ''", 2, "--convert"},
      {digest + "--resident maybe", 2, "--resident"},
      {digest + "--resident ''", 2, "--resident"},
      {digest + "--split both", 2, "--split both: must be train or test\n"},
      {digest + "--split training", 2, "training"},
      {digest + "--split ../test", 2, "../test"},
      {"convert --data @images --to @new --split both", 2, "both"},
      {digest + "--devices gpu", 2, "gpu"},
      {digest + "--devices abacus:2", 2, "abacus"},
      {digest + "--devices cpu:x", 2, "cpu:x"},
      {digest + "--devices cpu:", 2, "cpu:"},
      {digest + "--devices cpu:0", 2, "cpu:0"},
      {digest + "--devices cpu:-1", 2, "cpu:-1"},
      {digest + "--devices cpu:1.5", 2, "cpu:1.5"},
      {digest + "--devices cpu:4294967297", 2, "cpu:4294967297"},
      {digest + "--devices cuda:0,0", 2, "cuda:0"},
      {digest + "--devices cuda:0x0", 2, "cuda:0x0"},
      {digest + "--devices cuda:-1", 2, "cuda:-1"},
      {digest + "--devices cuda:0,", 2, "cuda:0,"},
      {digest + "--devices ''", 2, "devices"},
      {train + "mnist", 2, "mnist-mlp"},
      {train + "alchemy", 2, "mnist-mlp"},
      {train + "cifar10-fats", 2,
       "--recipe cifar10-fats is unknown: did you mean 'cifar10-fast'?\n  hint: must be auto, "
       "mnist-mlp, fashion-mnist, cifar10-cnn, cifar10-fast, cifar10-fast-b, cifar10-resnet18, "
       "images-small or images-resnet18\n"},
      {train + "''", 2, "mnist-mlp"},
      {train + "mnist-mlp --precision fp16", 2, "--precision"},
      {train + "mnist-mlp --precision ''", 2, "--precision"},
      {train + "mnist-mlp --strategy tpu", 2, "not provided"},
      {train + "mnist-mlp --strategy ''", 2, "--strategy is empty"},
      {"digest --pipeline jpeg-train --data @images --classes-at 0", 2, "classes"},
      {"digest --pipeline jpeg-train --data @images --classes-at 99", 2, "99"},
      {"digest --pipeline jpeg-train --data @images --classes-at -1", 2, "-1"},
      {"digest --pipeline jpeg-train --data @images --classes-at {class", 2, "{class"},
      {"digest --pipeline jpeg-train --data @images --classes-at {class}/{class}", 2, "{class}"},
      {"digest --pipeline jpeg-train --data @images --classes-at no/such/{class}", 2, "no/such/{class}"},
      {"digest --pipeline jpeg-train --data @images --train-folder nowhere", 2, "nowhere"},
      {"digest --pipeline jpeg-train --data @images --label-type numbers", 2, "numbers"},
      {"digest --pipeline jpeg-train --data @images --label-column ''", 2, "--label-column"},
      {"digest --pipeline jpeg-train --data @images --columns width", 2, "no member 'width' in its first samples"},
      {"digest --pipeline trivial --label-column y", 2, "reads no data"},
      {"train --recipe mnist-mlp --data @digits --columns width", 2, "--columns"},
      {"doctor --data @images --classes-at {klass}", 2, "{klass}"},
      {"convert --data @images --to @new --test-folder nowhere", 2, "nowhere"},
  };
}

inline WrongInputs wrong_combinations() {
  const std::string digest = "digest --pipeline trivial ", train = "train --recipe mnist-mlp --data @digits ";
  return {
      {"--nonsense", 2, ""},
      {"digest", 2, "--pipeline"},
      {"digest --pipeline", 2, "--pipeline"},
      {"ledger", 2, "--pipeline"},
      {"bench", 2, ""},
      {"bench output", 2, ""},
      {"bench input", 2, "--pipeline"},
      {"explain", 2, "--pipeline"},
      {"train", 2, "--data"},
      {"cache", 2, ""},
      {"cache verify", 2, "folder"},
      {"cache inspect", 2, "folder"},
      {"cache remove @cache", 2, ""},
      {"report", 2, "RUN_DIR"},
      {"report @run-whole @run-whole", 2, "@run-whole"},
      {"report @run-whole --out", 2, "--out"},
      {"report @run-whole --json -", 2, "--json"},
      {"report @run-whole --out @run-whole", 2, "is a folder"},
      {"report @run-whole --out @run-whole/history.jsonl", 2, "--out would overwrite"},
      {"cache verify @cache @cache", 2, ""},
      {"cache verify @cache --threads -1", 2, "--threads"},
      {"convert", 2, "--"},
      {"convert --data @images", 2, "--to"},
      {"convert --to @new", 2, "--data"},
      {"doctor @images", 2, "@images"},
      {"doctor --examine 4", 2, "--data"},
      {"doctor --classes-at parent", 2, "--data"},
      {"doctor --train-folder train", 2, "--data"},
      {"train --recipe mnist-mlp", 2, "--data"},
      {digest + "trivial", 2, "trivial"},
      {digest + "--pipeline trivial", 2, "--pipeline"},
      {digest + "-p 3", 2, "-p"},
      {digest + "--Seed 3", 2, "--Seed"},
      {digest + "--seconds 3", 2, "--seconds"},
      {digest + "--recipe mnist-mlp", 2, "--recipe"},
      {digest + "--check", 2, "--check"},
      {digest + "--resume", 2, "--resume"},
      {digest + "--world 4 --first 4 --replicas 1", 2, "not within a world of 4"},
      {digest + "--first 1", 2, "--world"},
      {"ledger --pipeline trivial --check --world 4", 2, "--world"},
      {digest + "--replicas 2 --devices cpu:2", 2, "--replicas"},
      {"bench input --pipeline trivial --replicas 2 --devices cpu:1", 2, "--replicas"},
      {"bench input --pipeline trivial --first-pass --epochs 2", 2, "--epochs"},
      {"bench input --pipeline trivial --first-pass --seconds 2", 2, "--seconds"},
      {"bench input --pipeline jpeg-train --data @images --first-pass --cache @new", 2, "with a disk cache"},
      {"bench input --pipeline cifar-train --data @images --baseline", 2, "--cache memory"},
      {"bench input --pipeline cifar-train --data @images --baseline --first-pass --cache memory", 2,
       "--cache memory"},
      {"ledger --pipeline trivial --start-step 3", 2, "--start-step"},
      {"explain --pipeline trivial --baseline", 2, "--baseline"},
      {"explain --pipeline trivial --warm-up 1", 2, "--warm-up needs a run"},
      {"explain --pipeline trivial --consumer-us 1", 2, "--consumer-us needs a run"},
      {"explain --pipeline trivial --try-cache memory", 2, "--try-cache needs a run"},
      {"explain --pipeline trivial --seconds 1 --try-cache memory --cache memory", 2, "give one of them"},
      {digest + "--devices cpu:2 --convert device", 2, "cpu:0 reads batches where the host wrote them"},
      {digest + "--devices cpu:2 --resident always", 2, "kept on the device"},
      {digest + "--devices cpu:2 --pinned-budget 1M", 2, "--pinned-budget changes nothing"},
      {digest + "--max-bad-share 0.5", 2, "--max-bad-share changes nothing"},
      {digest + "--readers 2", 2, "--readers 2 changes nothing"},
      {train + "--devices cpu:1 --pinned-budget 1M", 2, "--pinned-budget changes nothing"},
      {digest + "--cache auto", 2, "--cache auto"},
      {digest + "--memory-budget 1K", 2, "--memory-budget 1024 does not hold"},
      {digest + "--threads 3 --cpu-budget 2", 2, "--threads 3 is more than --cpu-budget 2"},
      {"digest --pipeline jpeg-train", 2, "--data"},
      {"digest --pipeline cifar-train --data ''", 2, "--data"},
      {digest + "--data @images", 2, "--data"},
      {digest + "--data @missing", 2, "--data"},
      {digest + "--classes-at parent", 2, "--classes-at"},
      {digest + "--split test", 2, "--split"},
      {digest + "--max-side 3", 2, "--max-side"},
      {train + "--runs 2 --trace @new", 2, "--trace"},
      {train + "--gradient-norms", 2, "--json"},
      {"evaluate --data @digits", 2, "--record"},
      {"evaluate --record '' --data @digits", 2, "--record"},
      {"evaluate --record @cache/notes.txt", 2, "neither --data nor --plan"},
      {"predict --record @cache/notes.txt --data ''", 2, "--data is empty"},
      {"evaluate --record @cache/notes.txt --plan @cache/notes.txt --split test", 2, "--data"},
      {"predict --record @cache/notes.txt --plan @cache/notes.txt --classes-at parent", 2, "--data"},
      {"evaluate --record @cache/notes.txt --data @digits --json @cache/notes.txt", 2, "--json would overwrite"},
      {"predict --record @cache/notes.txt --data @digits --out @digits", 2, "is a folder"},
      {"evaluate --record @cache/notes.txt --data @digits --out @new", 2, "--out"},
      {"evaluate --record @cache/notes.txt --data @digits --seed 3", 2, "--seed"},
      {digest + "--devices tpu", 2, "not supported"},
      {train + "--pipeline trivial", 2, "--pipeline"},
      {train + "--split test", 2, "--split"},
      {train + "--replicas 2", 2, "--replicas"},
      {train + "--baseline", 2, "--baseline"},
      {train + "--resume", 2, "--resume"},
      {train + "--global-batch 3 --devices cpu:4", 2, "3"},
      {train + "--global-batch 10 --accumulate 3", 2, "3"},
  };
}

// What a shell makes of "$VARIABLE" where it is not set: no option takes that for its absence.
inline WrongInputs wrong_empties() {
  const std::vector<std::pair<std::string, std::vector<std::string>>> options = {
      {"train --recipe mnist-mlp",
       {"--data", "--classes-at", "--train-folder", "--test-folder", "--cache", "--json", "--quarantine",
        "--checkpoint-dir", "--record", "--run-dir", "--tensorboard", "--csv", "--trace"}},
      {"evaluate --record @cache/notes.txt", {"--data", "--plan", "--json", "--quarantine"}},
      {"predict", {"--record", "--out"}},
      {"digest --pipeline trivial", {"--plan", "--cache", "--json"}},
      {"ledger --pipeline trivial", {"--json", "--quarantine"}},
      {"bench input --pipeline trivial", {"--json", "--cache"}},
      {"explain --pipeline trivial", {"--trace", "--write-plan", "--try-cache", "--json"}},
      {"convert --data @digits", {"--to", "--json"}},
      {"report @run-whole", {"--out"}},
      {"doctor", {"--data", "--json"}}};
  WrongInputs rows;
  for (const auto& [command, names] : options) {
    for (const std::string& name : names) rows.push_back({command + " " + name + " ''", 2, name + " is empty"});
  }
  rows.push_back({"train --recipe mnist-mlp --record=", 2, "--record is empty"});
  rows.push_back({"train --recipe ''", 2, "mnist-mlp"});
  return rows;
}

}  // namespace headrace::test
