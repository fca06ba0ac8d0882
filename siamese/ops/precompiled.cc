// The unit that carries the precompiled ATen header of builds without unity (see siamese/CMakeLists.txt).
