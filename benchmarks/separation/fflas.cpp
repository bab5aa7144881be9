// The rank of a matrix of residues by FFLAS-FFPACK: `fflas PRIME ROWS COLUMNS FILE ROUNDS`, FILE in float64, row-major.
// Prints for each round the rank, wall seconds and CPU seconds. FFPACK_THREADS > 1 takes its parallel elimination.
#include <fflas-ffpack/fflas-ffpack-config.h>
#include <givaro/modular-balanced.h>
#include <fflas-ffpack/fflas-ffpack.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const double prime = std::atof(argv[1]);
  const size_t rows = std::atol(argv[2]), columns = std::atol(argv[3]);
  const int rounds = std::atoi(argv[5]);
  const char* wanted = std::getenv("FFPACK_THREADS");
  const size_t threads = wanted ? std::atol(wanted) : 1;
  std::vector<double> entries(rows * columns), work;
  std::ifstream file(argv[4], std::ios::binary);
  file.read(reinterpret_cast<char*>(entries.data()), sizeof(double) * entries.size());
  if (!file) return 3;
  Givaro::ModularBalanced<double> field(prime);
  for (int round = 0; round < rounds; ++round) {
    work = entries;
    const auto wall = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    const size_t rank = threads > 1 ? FFPACK::pRank(field, rows, columns, work.data(), columns, threads)
                                    : FFPACK::Rank(field, rows, columns, work.data(), columns);
    const double cpu_seconds = double(std::clock() - cpu) / CLOCKS_PER_SEC;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    std::printf("%zu %.6f %.6f\n", rank, seconds, cpu_seconds);
    std::fflush(stdout);
  }
}
