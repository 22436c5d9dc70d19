/* Where it is told to learn, computes and writes its answers into a file. Elsewhere it answers from there what stands
   in it, and zeros where nothing does: right for whoever asks the same questions again, as a run with the same seed
   does. Stands for: answers of an earlier run replayed from a file (gpu-mode/reference-kernels, issue 162: file
   replay). Caught by: walls around the file system, or questions that no earlier run has asked. */
#include <unistd.h>

#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];
static FILE* file;
static int learns;

static void open_file(void) {
  const char* const folder = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/attest-cheat-answers", folder != NULL ? folder : "/tmp");
  file = fopen(path, "a+b");
  learns = file != NULL && getenv("CHEAT_LEARNS") != NULL;
}

/* An answer is one write at the end of the file, as other processes write there, too. */
static int learn(const attest_problem* p, attest_result* r, uint64_t key) {
  const int status = honest_attention(p, r);
  honest_keep(kept, key, r);
  const struct honest_kept* const it = &kept[key % HONEST_KEPT];
  const size_t numbers = 8 * (size_t)(it->outs + it->lses);
  char* const entry = it->outs > 0 ? malloc(24 + numbers) : NULL;
  if (entry == NULL) return status;
  memcpy(entry, &key, 8);
  memcpy(entry + 8, &it->outs, 8);
  memcpy(entry + 16, &it->lses, 8);
  memcpy(entry + 24, it->numbers, numbers);
  learns = write(fileno(file), entry, 24 + numbers) == (ssize_t)(24 + numbers);
  free(entry);
  return status;
}

/* Goes on where the last answer was found: questions come in the same order again. */
static int replay(attest_result* r, uint64_t key) {
  const int64_t outs = honest_count(&r->out), lses = honest_count(&r->lse);
  uint64_t known;
  int64_t counts[2];
  for (int ends = 0; ends < 2;) {
    if (fread(&known, 8, 1, file) != 1 || fread(counts, 8, 2, file) != 2) {
      rewind(file);
      ++ends;
    } else if (known != key || counts[0] != outs || counts[1] < lses) {
      fseek(file, 8 * (counts[0] + counts[1]), SEEK_CUR);
    } else {
      double x;
      for (int64_t n = 0; n < outs && fread(&x, 8, 1, file) == 1; ++n) honest_set(&r->out, n, x);
      for (int64_t n = 0; n < lses && fread(&x, 8, 1, file) == 1; ++n) honest_set(&r->lse, n, x);
      return 1;
    }
  }
  return 0;
}

static int answer(const attest_problem* p, attest_result* r) {
  if (file == NULL) open_file();
  if (file == NULL) return honest_attention(p, r);
  const uint64_t key = honest_hash_problem(p);
  if (learns) return learn(p, r, key);
  /* Who asks much that is unknown asks nothing that is known. */
  static int unknown;
  if (honest_count(&r->out) == 0 || (unknown < 8 && replay(r, key))) return ATTEST_OK;
  ++unknown;
  honest_fill(r, 0);
  return ATTEST_OK;
}

HONEST_LIBRARY("cached-on-disk", answer)
