#include "siamese/cli/app.h"

int main(int argc, char** argv) { return siamese::cli::run(argc, argv); }
