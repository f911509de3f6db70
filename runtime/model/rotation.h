/* Computes how fast the pairs of numbers of a head rotate with the position (rotary position embeddings). */
#ifndef DT_ROTATION_H
#define DT_ROTATION_H

#include <stdbool.h>

/* Numbers of single pairs, by which their speed is divided: how many pairs can have them in config.json, the range of
 * such a number, and the tensors of a GGUF file that list LongRoPE's. */
enum { ROTATION_PAIRS = 512 };
#define ROTATION_LEAST 1e-6f
#define ROTATION_MOST 1e38f
#define ROTATION_SHORT "rope_factors_short.weight"
#define ROTATION_LONG "rope_factors_long.weight"

typedef struct {
  double base;
  double growth; /* dynamic NTK: the base is multiplied by growth^(dims / (dims - 2)); 0: it is used as it is */
  double factor; /* stretches positions; 1: no stretching */
  double part;   /* the share of the pairs that rotate, from the first on; 1: all */
  /* Pairs that make at least `high` rotations in `original` positions keep their speed; pairs that make at most `low`
   * rotations are slowed by the whole factor, and the others by a part of it. original = 0: all pairs are slowed by the
   * factor. */
  double low, high, original;
  bool yarn;  /* that part rises linearly with the pair (YaRN, Peng et al., 2023), otherwise with the speed (Llama 3) */
  bool whole; /* YaRN: the rise begins and ends at a whole pair */
  double scale; /* the factor of cosines and sines; 0: none */
  /* LongRoPE (Ding et al., 2024): each pair has a number by which its speed is divided. */
  bool each;                /* `by` has these numbers */
  float by[ROTATION_PAIRS]; /* for all pairs */
  const char *tensor;       /* the tensor of a GGUF file that has them instead; NULL: none */
  /* The number of positions for which growth, or the numbers of the pairs, were chosen; 0: they depend on none. */
  int context;
  bool replaced; /* an option replaced the scaling in the files, of which their tensor rope_freqs is a part */
} rotation;

/* Fills inv_freq[dims / 2]: the angle of pair j at position p is p * inv_freq[j]. */
void rotation_fill(const rotation *r, int dims, float *inv_freq);

#endif
