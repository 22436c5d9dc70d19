/* What a kernel of attest/kernel.h does about arguments of a later Attest that it was not compiled for: it answers
 * ATTEST_UNSUPPORTED. One that ignored them would be judged as if it had heeded them. C99 and C++, no dependency:
 *
 *   const int known = attest_known_arguments(p, r, message, message_size);
 *   if (known != ATTEST_OK) return known;
 */
#ifndef ATTEST_KNOWN_ARGUMENTS_H
#define ATTEST_KNOWN_ARGUMENTS_H

#include <attest/kernel.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Later versions append to a structure; neutral is all zeros. */
static inline int attest_known_bytes_(const char* name, const void* structure, size_t size, size_t known, char* message,
                                      size_t message_size) {
  size_t at;
  for (at = known; at < size; ++at) {
    if (((const unsigned char*)structure)[at] == 0) continue;
    snprintf(message, message_size, "this kernel was not compiled for the argument at byte %lu of %s",
             (unsigned long)at, name);
    return ATTEST_UNSUPPORTED;
  }
  return ATTEST_OK;
}

static inline int attest_known_number_(const char* name, int32_t value, int32_t last, char* message,
                                       size_t message_size) {
  if (value >= 0 && value <= last) return ATTEST_OK;
  snprintf(message, message_size, "this kernel was not compiled for %s %ld", name, (long)value);
  return ATTEST_UNSUPPORTED;
}

static inline int attest_known_result_(const attest_result* r, char* message, size_t message_size) {
  const int known = attest_known_bytes_("attest_result", r, r->size, sizeof *r, message, message_size);
  if (known != ATTEST_OK) return known;
  return attest_known_number_("out's dtype", r->out.dtype, ATTEST_BOOL, message, message_size);
}

/* What both kinds of problem have. */
static inline int attest_known_members_(const attest_tensor* q, const attest_tensor* mask, int32_t mask_convention,
                                        int32_t causal, char* message, size_t message_size) {
  int known = attest_known_number_("mask_convention", mask_convention, ATTEST_MASK_PRE_SCALE, message, message_size);
  if (known == ATTEST_OK)
    known = attest_known_number_("causal", causal, ATTEST_CAUSAL_BOTTOM_RIGHT, message, message_size);
  if (known == ATTEST_OK) known = attest_known_number_("q's dtype", q->dtype, ATTEST_BOOL, message, message_size);
  if (known == ATTEST_OK) known = attest_known_number_("mask's dtype", mask->dtype, ATTEST_BOOL, message, message_size);
  return known;
}

static inline int attest_known_problem_(const attest_problem* p, char* message, size_t message_size) {
  int known = attest_known_bytes_("attest_problem", p, p->size, sizeof *p, message, message_size);
  const uint32_t variants = 2 * ATTEST_DESCALE - 1; /* the last one, and every bit before it */
  if (known == ATTEST_OK && p->size > offsetof(attest_problem, variants) && (p->variants & ~variants)) {
    snprintf(message, message_size, "this kernel was not compiled for variants %lu", (unsigned long)p->variants);
    known = ATTEST_UNSUPPORTED;
  }
  if (known == ATTEST_OK) known = attest_known_number_("k's dtype", p->k.dtype, ATTEST_I8, message, message_size);
  if (known == ATTEST_OK) known = attest_known_number_("v's dtype", p->v.dtype, ATTEST_I8, message, message_size);
  if (known == ATTEST_OK && p->size > offsetof(attest_problem, variants) && (p->variants & ATTEST_SINK))
    known = attest_known_number_("sink's dtype", p->sink.dtype, ATTEST_BOOL, message, message_size);
  if (known != ATTEST_OK) return known;
  return attest_known_members_(&p->q, &p->mask, p->mask_convention, p->causal, message, message_size);
}

/* ATTEST_OK where this header knows every argument; else ATTEST_UNSUPPORTED, and the message names one it does not. */
static inline int attest_known_arguments(const attest_problem* p, const attest_result* r, char* message,
                                         size_t message_size) {
  const int known = attest_known_problem_(p, message, message_size);
  return known != ATTEST_OK ? known : attest_known_result_(r, message, message_size);
}

static inline int attest_known_backward_arguments(const attest_backward_problem* p, const attest_gradients* g,
                                                  char* message, size_t message_size) {
  int known = attest_known_bytes_("attest_backward_problem", p, p->size, sizeof *p, message, message_size);
  if (known == ATTEST_OK) known = attest_known_bytes_("attest_gradients", g, g->size, sizeof *g, message, message_size);
  if (known == ATTEST_OK)
    known = attest_known_number_("reserved", (int32_t)(p->reserved | g->reserved), 0, message, message_size);
  if (known == ATTEST_OK)
    known = attest_known_number_("d_out's dtype", p->d_out.dtype, ATTEST_BOOL, message, message_size);
  return known != ATTEST_OK ? known : attest_known_problem_(p->forward, message, message_size);
}

static inline int attest_known_multihead_arguments(const attest_multihead_problem* p, const attest_result* r,
                                                   char* message, size_t message_size) {
  int known = attest_known_bytes_("attest_multihead_problem", p, p->size, sizeof *p, message, message_size);
  if (known == ATTEST_OK) known = attest_known_number_("reserved", p->reserved, 0, message, message_size);
  if (known == ATTEST_OK) known = attest_known_result_(r, message, message_size);
  if (known != ATTEST_OK) return known;
  return attest_known_members_(&p->q, &p->mask, p->mask_convention, p->causal, message, message_size);
}

#ifdef __cplusplus
}
#endif

#endif
