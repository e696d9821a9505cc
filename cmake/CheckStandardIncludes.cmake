# cmake -DINCLUDE_DIR=<include/roundpipe> -P CheckStandardIncludes.cmake
# Checks that every header includes the standard headers whose names it uses:
#   - for each std::NAME, one of the headers that the table below gives for NAME;
#   - for some words without std::, such as assert( and operator<=>, likewise.
# ROOM/impl/NAME.ipp may rely on what ROOM/NAME.hpp includes, and on nothing else. A std::NAME that
# is not in the table is an error: add it there. Comments do not count; strings do.
cmake_minimum_required(VERSION 3.25)

# provides(<header> <name>...): the header declares each std::<name>. Several may declare one.
function(provides header)
  foreach(name IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY "headers of std::${name}" ${header})
  endforeach()
endfunction()
provides(algorithm min max minmax clamp find find_if find_if_not any_of all_of none_of sort
  stable_sort inplace_merge nth_element partial_sort copy copy_n copy_if fill fill_n generate transform for_each
  count count_if unique remove_if remove_copy_if replace replace_if reverse rotate equal mismatch lexicographical_compare
  lower_bound upper_bound equal_range binary_search partition stable_partition partition_point
  min_element max_element minmax_element adjacent_find is_sorted merge push_heap pop_heap make_heap
  ranges::min ranges::max ranges::minmax ranges::clamp ranges::find ranges::find_if
  ranges::find_if_not ranges::any_of ranges::all_of ranges::none_of ranges::sort
  ranges::stable_sort ranges::nth_element ranges::copy ranges::copy_if ranges::fill ranges::fill_n
  ranges::generate ranges::transform ranges::for_each ranges::count ranges::count_if ranges::unique
  ranges::remove ranges::remove_if ranges::remove_copy_if ranges::replace ranges::reverse
  ranges::rotate ranges::equal ranges::mismatch ranges::lower_bound ranges::upper_bound
  ranges::equal_range ranges::binary_search ranges::partition ranges::stable_partition
  ranges::partition_point ranges::min_element ranges::max_element ranges::adjacent_find
  ranges::is_sorted ranges::contains)
provides(array array to_array)
provides(atomic atomic atomic_ref atomic_flag atomic_thread_fence memory_order memory_order_relaxed
  memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst)
provides(bit bit_cast bit_width bit_ceil bit_floor countl_zero countr_zero popcount has_single_bit
  endian rotl rotr)
provides(charconv from_chars to_chars chars_format from_chars_result to_chars_result)
provides(chrono chrono)
provides(cmath abs isfinite isnan isinf sqrt pow exp exp2 log log2 log10 sin cos tan tanh ceil floor
  round lround llround trunc ldexp frexp fma fmod hypot lerp nextafter signbit copysign)
provides(compare strong_ordering weak_ordering partial_ordering)
provides(concepts same_as convertible_to derived_from constructible_from copy_constructible
  move_constructible default_initializable copyable movable regular semiregular equality_comparable
  totally_ordered invocable regular_invocable predicate integral signed_integral unsigned_integral
  floating_point destructible assignable_from swappable)
provides(condition_variable condition_variable condition_variable_any cv_status)
provides(cstddef size_t ptrdiff_t nullptr_t max_align_t byte to_integer)
provides(cstdint int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
  intmax_t uintmax_t)
provides(cstdio FILE snprintf printf fprintf fopen fclose fputs rename)
provides(cstdlib getenv abort exit strtod strtol strtoull abs)
provides(cstring memcpy memmove memset memcmp strlen strcmp strerror)
provides(deque deque)
provides(exception exception exception_ptr current_exception rethrow_exception make_exception_ptr
  uncaught_exceptions terminate)
provides(filesystem filesystem)
provides(fstream ifstream ofstream fstream)
provides(functional function hash greater greater_equal less less_equal equal_to not_equal_to plus
  minus multiplies invoke reference_wrapper ref cref bind_front identity ranges::less
  ranges::greater ranges::equal_to)
provides(future async launch future future_status promise packaged_task shared_future)
provides(initializer_list initializer_list)
provides(iomanip setprecision setw setfill)
provides(ios ios ios_base fixed scientific hex streamsize)
provides(istream istream ws)
provides(iterator istreambuf_iterator ostreambuf_iterator istream_iterator ostream_iterator
  back_inserter back_insert_iterator inserter make_move_iterator move_iterator reverse_iterator
  make_reverse_iterator prev next advance distance iter_value_t iter_reference_t
  input_iterator forward_iterator random_access_iterator contiguous_iterator
  iterator_traits forward_iterator_tag random_access_iterator_tag)
provides(limits numeric_limits)
provides(map map multimap)
provides(memory unique_ptr shared_ptr weak_ptr make_unique make_shared make_unique_for_overwrite
  enable_shared_from_this addressof construct_at destroy_at destroy destroy_n default_delete
  uninitialized_copy uninitialized_default_construct_n assume_aligned align allocator
  allocator_traits static_pointer_cast)
provides(mutex mutex recursive_mutex lock_guard unique_lock scoped_lock once_flag call_once
  adopt_lock defer_lock try_to_lock)
provides(new nothrow nothrow_t align_val_t launder bad_alloc hardware_destructive_interference_size)
provides(numbers numbers)
provides(numeric accumulate reduce transform_reduce inner_product partial_sum inclusive_scan
  exclusive_scan iota midpoint gcd lcm)
provides(optional optional nullopt nullopt_t make_optional)
provides(ostream ostream endl flush)
provides(queue queue priority_queue)
provides(ranges views ranges::subrange ranges::iota_view ranges::ref_view)
foreach(header IN ITEMS iterator ranges)
  provides(${header} ranges::begin ranges::end ranges::size ranges::data)
endforeach()
provides(ranges ranges::range ranges::input_range ranges::forward_range ranges::random_access_range
  ranges::borrowed_range ranges::contiguous_range ranges::sized_range ranges::view
  ranges::range_value_t ranges::range_reference_t ranges::iterator_t)
provides(semaphore counting_semaphore binary_semaphore)
provides(set set multiset)
provides(shared_mutex shared_mutex shared_lock)
provides(source_location source_location)
provides(span span as_bytes as_writable_bytes dynamic_extent)
provides(sstream istringstream ostringstream stringstream)
provides(stdexcept runtime_error logic_error invalid_argument out_of_range length_error domain_error)
provides(stop_token stop_token stop_source)
provides(string string to_string stoi stol stoul stoull stod getline char_traits)
provides(string_view string_view)
provides(system_error system_error error_code error_condition error_category errc make_error_code
  make_error_condition generic_category system_category is_error_code_enum is_error_condition_enum)
provides(thread thread jthread this_thread)
provides(tuple tuple make_tuple tie forward_as_tuple tuple_cat apply ignore)
provides(type_traits is_class_v is_final_v is_same is_same_v is_const_v is_void_v is_convertible_v is_integral_v
  is_floating_point_v is_enum_v is_base_of_v is_trivially_copyable_v is_trivially_destructible_v
  is_standard_layout_v is_nothrow_move_constructible_v is_nothrow_move_assignable_v
  is_nothrow_invocable_v is_nothrow_constructible_v is_constructible_v is_copy_constructible_v
  is_default_constructible_v is_invocable_v is_invocable_r_v is_reference_v is_pointer_v is_empty_v
  invoke_result_t decay_t remove_const_t remove_cv_t remove_reference_t remove_cvref_t
  remove_pointer_t add_const_t conditional_t enable_if_t common_type_t underlying_type_t
  make_signed_t make_unsigned_t type_identity type_identity_t void_t integral_constant bool_constant
  true_type false_type is_constant_evaluated conjunction_v disjunction_v)
provides(typeindex type_index)
provides(typeinfo type_info)
provides(unordered_map unordered_map)
provides(unordered_set unordered_set)
provides(utility move forward exchange swap pair make_pair declval as_const piecewise_construct
  integer_sequence make_integer_sequence index_sequence make_index_sequence index_sequence_for
  in_place in_place_t in_place_type in_place_type_t in_place_index to_underlying cmp_less
  cmp_less_equal cmp_equal unreachable)
provides(variant variant visit holds_alternative get_if monostate variant_size_v
  variant_alternative_t)
provides(vector vector)
foreach(header IN ITEMS array tuple utility variant)
  provides(${header} get)
endforeach()
foreach(header IN ITEMS array tuple utility)
  provides(${header} tuple_size tuple_size_v tuple_element tuple_element_t)
endforeach()
foreach(header IN ITEMS optional string string_view system_error thread typeindex variant)
  provides(${header} hash)
endforeach()
foreach(header IN ITEMS istream ostream fstream sstream)
  provides(${header} ios ios_base)
endforeach()
foreach(header IN ITEMS deque map set string unordered_map unordered_set vector)
  provides(${header} erase_if)
endforeach()
foreach(header IN ITEMS deque string vector)
  provides(${header} erase)
endforeach()
foreach(header IN ITEMS array deque iterator map set span string string_view unordered_map
    unordered_set vector)
  provides(${header} size ssize data begin end cbegin cend rbegin rend empty)
endforeach()

# Words that need a header and have no std:: before them. The standard says which other headers
# include <compare> and <initializer_list>.
set(words "assert" "errno" "typeid" "placement new" "operator<=>" "for over braces")
set(pattern_assert "[^A-Za-z0-9_]assert[(]")
set(headers_assert cassert)
set(pattern_errno "[^A-Za-z0-9_]errno[^A-Za-z0-9_]")
set(headers_errno cerrno)
set(pattern_typeid "[^A-Za-z0-9_]typeid[(]")
set(headers_typeid typeinfo typeindex)
set("pattern_placement new" "[^A-Za-z0-9_]new [(]")
set("headers_placement new" new)
set("pattern_operator<=>" "operator<=>")
set("headers_operator<=>" compare array deque iterator map memory optional queue ranges set string
  string_view system_error thread tuple typeindex unordered_map utility variant vector)
set("pattern_for over braces" "for [(][^;()]* : {[^}]")
set("headers_for over braces" initializer_list algorithm array deque map queue ranges set string
  unordered_map unordered_set utility vector)

# The standard headers that `text` includes. CheckFloors.cmake knows how #include is written.
function(included_by text out)
  string(REGEX MATCHALL "#[ \t]*include <[a-z_0-9]+>" lines "${text}")
  list(TRANSFORM lines REPLACE ".*<(.+)>" "\\1")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

function(check_use file use headers included)
  foreach(header IN LISTS headers)
    if(header IN_LIST included)
      return()
    endif()
  endforeach()
  list(JOIN headers "> or <" text)
  message(SEND_ERROR "${file} uses ${use} and does not include <${text}>")
endfunction()

file(GLOB_RECURSE files RELATIVE "${INCLUDE_DIR}" "${INCLUDE_DIR}/*.hpp" "${INCLUDE_DIR}/*.cuh"
  "${INCLUDE_DIR}/*.ipp")
if(NOT files)
  message(FATAL_ERROR "no headers under '${INCLUDE_DIR}'")
endif()
foreach(file IN LISTS files)
  file(READ "${INCLUDE_DIR}/${file}" text)
  string(REGEX REPLACE "(^|[^:])//[^\n]*" "\\1" text "${text}") # the : of "http://"
  string(REGEX REPLACE "/[*][^*\n]*[*]/" "" text "${text}")
  string(REPLACE "cuda::std::" "" text "${text}")
  included_by("${text}" included)
  if(file MATCHES "^(.+)/impl/([^/]+)\\.ipp$")
    file(READ "${INCLUDE_DIR}/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.hpp" own)
    included_by("${own}" more)
    list(APPEND included ${more})
  endif()
  string(REGEX MATCHALL "std::(ranges::)?[A-Za-z_0-9]+" uses "${text}")
  list(REMOVE_DUPLICATES uses)
  foreach(use IN LISTS uses)
    get_property(headers GLOBAL PROPERTY "headers of ${use}")
    if(headers)
      check_use("${file}" "${use}" "${headers}" "${included}")
    else()
      message(SEND_ERROR "${file} uses ${use}: add it to the table of CheckStandardIncludes.cmake")
    endif()
  endforeach()
  foreach(word IN LISTS words)
    if(text MATCHES "${pattern_${word}}")
      check_use("${file}" "${word}" "${headers_${word}}" "${included}")
    endif()
  endforeach()
endforeach()
