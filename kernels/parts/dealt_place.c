// Where a vector of four columns lies among rows that are dealt out: [rows / 16][columns / 16][32 work-items][2], and of a matrix
// of 16 x 16 work-item 4 i + j has four columns from 4 j on of the rows i and i + 8. `columns4` is a multiple of four.
#define DEALT_AT(row, column) \
    (((((row) / 16 * (columns4 / 4) + (column) / 4) * 8 + (row) % 8) * 4 + (column) % 4) * 2 + (row) % 16 / 8)
