/* What cannot be used: counted over several runs, and found by a pass over a source. */
#include "headrace/tests/bindings/c/check.h"

/* Of eight pictures of two classes one, of the first class, is cut short. */
static const char* damaged;

/* What JSON says of it. */
static const char kTheShortOne[] = "\"operation\":\"decode\"";

static hr_dataset* open_damaged(void) {
  hr_dataset* dataset = NULL;
  OK(hr_dataset_open(damaged, NULL, &dataset));
  return dataset;
}

static uint64_t run(const char* on_error, hr_tally* tally) {
  hr_dataset* dataset = open_damaged();
  OK(hr_dataset_add(dataset, "decode", NULL, NULL));
  OK(hr_dataset_add(dataset, "map", "[{\"center_crop\": {\"size\": 8}}]", NULL));
  OK(hr_dataset_add(dataset, "batch", "{\"global_batch\": 4}", NULL));
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  calls.tally = tally;
  hr_loader* loader = NULL;
  OK(open_on_one(dataset, with("{\"on_error\": \"%s\", \"max_bad_share\": 0.5, \"epochs\": 3}", on_error), &calls,
                 &loader));
  for (hr_batch* next = next_of(loader); next != NULL; next = next_of(loader)) hr_batch_free(next);
  char* json = NULL;
  OK(hr_loader_stats(loader, &json));
  const double bad = number_in(json, "bad_records");
  hr_string_free(json);
  hr_loader_free(loader);
  hr_dataset_free(dataset);
  return (uint64_t)bad;
}

static void test_a_tally_of_several_runs(void) {
  hr_tally* tally = NULL;
  OK(hr_tally_create(&tally));
  SAYS("{\"bad\":0,\"records\":0,\"first\":null}", hr_tally_read(tally, &text));
  CHECK(run("skip", tally) == 3);
  CHECK(run("substitute", tally) == 3);
  SAYS("{\"bad\":1,\"records\":8,\"first\":{\"source\":\"", hr_tally_read(tally, &text));
  remove("bad.jsonl");
  SAYS("\"bad_records\":1,\"reading\":\"",
       hr_convert(
           damaged, "most.hrr",
           "{\"quality\": 80, \"on_error\": \"skip\", \"max_bad_share\": 0.5, \"quarantine\": \"bad.jsonl\"}",
           tally, &text));
  SAYS("{\"bad\":1,\"records\":8,", hr_tally_read(tally, &text));
  char line[4096] = {0};
  FILE* listed = fopen("bad.jsonl", "r");
  CHECK(listed != NULL && fgets(line, sizeof line, listed) != NULL && strstr(line, "003.png") != NULL);
  if (listed != NULL) fclose(listed);
  SAYS("003.png", hr_tally_read(tally, &text));
  SAYS(kTheShortOne, hr_tally_read(tally, &text));
  SAYS("\"code\":\"data_corrupt\"", hr_tally_read(tally, &text));
  hr_tally_free(tally);
}

static void test_loaders_keep_their_tally(void) {
  hr_loader_calls calls = HR_LOADER_CALLS_INIT;
  OK(hr_tally_create(&calls.tally));
  hr_dataset* dataset = numbers_in_batches(10, 4);
  hr_loader* loader = NULL;
  OK(open_on_one(dataset, NULL, &calls, &loader));
  hr_tally_free(calls.tally);
  hr_batch_free(next_of(loader));
  hr_loader_free(loader);
  hr_dataset_free(dataset);
}

static void test_an_inspection(void) {
  static const char* const words[] = {"{\"records\":8,\"examined\":8,\"bytes\":",
                                      "\"height\":{\"min\":12,\"max\":12},\"width\":{\"min\":10,\"max\":10}",
                                      "\"labels\":{\"0\":4,\"1\":4},\"labelled\":8,\"bad\":1,\"first_bad\":[{",
                                      "003.png",
                                      kTheShortOne,
                                      "\"warned\":0,\"first_warned\":[],\"oriented\":0,\"columns\":["};
  hr_dataset* dataset = open_damaged();
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    SAYS(words[i], hr_dataset_inspect(dataset, NULL, &text));
  SAYS("\"examined\":2,", hr_dataset_inspect(dataset, "{\"max_examined\": 2, \"max_listed\": 0}", &text));
  SAYS("\"first_bad\":[]", hr_dataset_inspect(dataset, "{\"max_listed\": 0}", &text));
  char* text = NULL;
  FAILS(HR_INVALID_ARGUMENT, "options of an inspection: there is no option \"max_examinde\": did you mean",
        hr_dataset_inspect(dataset, "{\"max_examinde\": 2}", &text));
  hr_dataset_free(dataset);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char path[512];
  snprintf(path, sizeof path, "%s/damaged", argv[1]);
  damaged = path;
  test_a_tally_of_several_runs();
  test_loaders_keep_their_tally();
  test_an_inspection();
  return end_of_test();
}
