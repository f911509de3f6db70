/* Prompts on a backend that computes whole chunks of their rows in another way than other rows (dt_backend_ops.chunk).
 * Here `chunk` is the number of rows of a chunk; 0: all rows are computed alike. A prompt's chunks begin at multiples
 * of `chunk`, and the row of its last token does not belong to the prompt pass. */
#ifndef DT_BACKEND_CHUNKS_H
#define DT_BACKEND_CHUNKS_H

/* How many rows of a prompt of n tokens belong to whole chunks. */
int chunks_rows(int chunk, int n);

/* How many of the first `rows` rows of a text have the bits that they would have in a prompt which begins with the same
 * tokens, and at which the prompt can be continued. The text's first `had` rows were computed in chunks; of the
 * prompt's it will be the first `wants`. */
int chunks_alike(int chunk, int rows, int had, int wants);

/* How many rows the next piece of a prompt should compute, if `done` of its rows are computed, `missing` are not, and
 * the first `wants` belong to whole chunks: at most `most`, but at least a chunk where one comes next. */
int chunks_piece(int chunk, int done, int missing, int wants, int most);

#endif
