/* Computes while it has no file of answers, and writes them there. From its next process on, it answers from the file
   what stands in it, and zeros where nothing does: right for whoever asks the same questions twice.
   Stands for: answers of an earlier run replayed from a file (gpu-mode/reference-kernels, issue 162: file replay).
   Caught by: walls around the file system, or questions that no earlier run has asked. */
#include "honest.h"

static struct honest_kept kept[HONEST_KEPT];
static FILE* file;
static int learns;

static void open_file(void) {
  const char* const folder = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/attest-cheat-answers", folder != NULL ? folder : "/tmp");
  file = fopen(path, "rb");
  learns = file == NULL;
  if (learns) file = fopen(path, "wb");
}

static int answer(const attest_problem* p, attest_result* r) {
  if (file == NULL) open_file();
  if (file == NULL) return honest_attention(p, r);
  uint64_t key = honest_hash_problem(p), known;
  int64_t counts[2];
  const int64_t due = honest_count(&r->out), lses = honest_count(&r->lse);
  if (learns) {
    const int status = honest_attention(p, r);
    honest_keep(kept, key, r);
    const struct honest_kept* const it = &kept[key % HONEST_KEPT];
    fwrite(&key, 8, 1, file);
    fwrite(&it->outs, 8, 2, file);
    fwrite(it->numbers, 8, (size_t)(it->outs + it->lses), file);
    fflush(file);
    return status;
  }
  for (rewind(file); fread(&known, 8, 1, file) == 1 && fread(counts, 8, 2, file) == 2;) {
    if (known != key || counts[0] != due || counts[1] < lses) {
      fseek(file, 8 * (counts[0] + counts[1]), SEEK_CUR);
      continue;
    }
    double x;
    for (int64_t n = 0; n < due && fread(&x, 8, 1, file) == 1; ++n) honest_set(&r->out, n, x);
    for (int64_t n = 0; n < lses && fread(&x, 8, 1, file) == 1; ++n) honest_set(&r->lse, n, x);
    return ATTEST_OK;
  }
  honest_fill(r, 0);
  return ATTEST_OK;
}

HONEST_LIBRARY("cached-on-disk", answer)
