// A program with llama-bench's words and output, which times what a library does.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int work(const char* path, int prompt, int generated, int threads);

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static const char* of(int argc, char** argv, const char* name, const char* otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (!strcmp(argv[i], name)) return argv[i + 1];
  return otherwise;
}

int main(int argc, char** argv) {
  const char* path = of(argc, argv, "-m", "");
  const int runs = atoi(of(argc, argv, "-r", "5")), threads = atoi(of(argc, argv, "-t", "1"));
  const int prompt = atoi(of(argc, argv, "-p", "0")), generated = atoi(of(argc, argv, "-n", "128"));
  if (work(path, 0, 0, threads)) {
    fprintf(stderr, "error: failed to load model '%s'\n", path);
    return 1;
  }
  long took[100], sum = 0;
  for (int i = 0; i < runs && i < 100; ++i) {
    const long began = now();
    if (work(path, prompt, generated, threads)) return 1;
    sum += took[i] = now() - began;
  }
  printf("{\"build_commit\": \"own\", \"build_number\": 1, \"cpu_info\": \"a C loop\", \"gpu_info\": \"\", ");
  printf("\"backends\": \"CPU\", \"n_threads\": %d, \"type_k\": \"f16\", \"type_v\": \"f16\", ", threads);
  printf("\"n_gpu_layers\": 0, \"flash_attn\": -1, \"n_prompt\": %d, \"n_gen\": %d, ", prompt, generated);
  printf("\"n_depth\": %s, \"avg_ns\": %ld, \"samples_ns\": [", of(argc, argv, "-d", "0"), sum / runs);
  for (int i = 0; i < runs; ++i) printf("%s%ld", i ? ", " : " ", took[i]);
  printf(" ],\"samples_ts\": [");
  for (int i = 0; i < runs; ++i) printf("%s%g", i ? ", " : " ", 1e9 * (prompt + generated) / took[i]);
  printf(" ]}\n");
  return 0;
}
