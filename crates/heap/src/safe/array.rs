//! Arrays: elements, one at a time and in bulk.
//!
//! No slice of the heap is handed out: another thread may write the same array, and Rust's slices
//! promise that nobody does. Bulk operations copy, element by element, each element in one relaxed
//! atomic access.

use super::error::{AccessError, Refusal};
use super::field::{Data, describe, wrong_kind};
use super::gc::Gc;
use super::value::Value;
use crate::collector::Collector;
use crate::header::HEADER_BYTES;
use crate::object;
use crate::shape::{Form, Kind};

impl<'a, C: Collector> Gc<'a, C> {
    /// Element `index` of an array of references.
    #[inline(always)]
    pub fn element(self, index: usize) -> Result<Value<'a, C>, AccessError> {
        self.check_elements(index, 1)?;
        // SAFETY: the element is a reference slot of this object.
        unsafe {
            let reference = object::load(object::slot_address(self.address(), index));
            Ok(Value::new(self.session(), reference))
        }
    }

    /// Writes element `index` of an array of references, through the barrier.
    #[inline(always)]
    pub fn set_element<'v>(
        self,
        index: usize,
        value: impl Into<Value<'v, C>>,
    ) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let value = value.into().reference(self.session())?;
        self.check_elements(index, 1)?;
        // SAFETY: the element is a strong reference slot of this object.
        unsafe { self.store_at(object::slot_address(self.address(), index), false, value) };
        Ok(())
    }

    /// Writes `value` into `count` elements of an array of references, from `start` on.
    pub fn fill_elements<'v>(
        self,
        start: usize,
        count: usize,
        value: impl Into<Value<'v, C>>,
    ) -> Result<(), AccessError>
    where
        C: 'v,
    {
        let value = value.into().reference(self.session())?;
        self.check_elements(start, count)?;
        for index in start..start + count {
            // SAFETY: the element is a strong reference slot of this object.
            unsafe { self.store_at(object::slot_address(self.address(), index), false, value) };
        }
        Ok(())
    }

    /// Copies `count` references from `source` (which may be the same array, overlapping) into this
    /// array, through the barrier.
    pub fn copy_elements(
        self,
        start: usize,
        source: Gc<'_, C>,
        source_start: usize,
        count: usize,
    ) -> Result<(), AccessError> {
        Value::Object(source).reference(self.session())?;
        self.check_elements(start, count)?;
        source.check_elements(source_start, count)?;
        let one = |index: usize| {
            let from = object::slot_address(source.address(), source_start + index);
            let to = object::slot_address(self.address(), start + index);
            // SAFETY: both are strong reference slots of their objects, of the same heap.
            unsafe { self.store_at(to, false, object::load(from)) };
        };
        // Downwards when an upwards copy would overwrite what it has not read yet.
        if start > source_start {
            (0..count).rev().for_each(one);
        } else {
            (0..count).for_each(one);
        }
        Ok(())
    }

    /// `count` elements from `start` on are elements of this array of references.
    #[inline(always)]
    fn check_elements(self, start: usize, count: usize) -> Result<(), AccessError> {
        let word = self.header();
        let form = self.session().shapes().layout(word.shape()).form;
        if form == Form::References && in_range(start, count, word.aux()) {
            return Ok(());
        }
        Err(self.bad_elements(start, count, Kind::Reference))
    }

    /// Element `index` of an array of data whose elements are as wide as `T`.
    #[inline(always)]
    pub fn read_at<T: Data>(self, index: usize) -> Result<T, AccessError> {
        self.check_data::<T>(index, 1)?;
        // SAFETY: the element is data of this width.
        Ok(unsafe { T::load(self.data_address::<T>(index)) })
    }

    /// Writes element `index` of an array of data whose elements are as wide as `T`.
    #[inline(always)]
    pub fn write_at<T: Data>(self, index: usize, value: T) -> Result<(), AccessError> {
        self.check_data::<T>(index, 1)?;
        // SAFETY: the element is data of this width.
        unsafe { value.store(self.data_address::<T>(index)) };
        Ok(())
    }

    /// Copies elements out of an array of data, from `start` on, as many as `target` has room for.
    pub fn copy_to<T: Data>(self, start: usize, target: &mut [T]) -> Result<(), AccessError> {
        self.check_data::<T>(start, target.len())?;
        let from = self.data_address::<T>(start);
        for (index, element) in target.iter_mut().enumerate() {
            // SAFETY: the element is data of this width.
            *element = unsafe { T::load(from + index * size_of::<T>()) };
        }
        Ok(())
    }

    /// Copies `source` into an array of data, from `start` on.
    pub fn copy_from<T: Data>(self, start: usize, source: &[T]) -> Result<(), AccessError> {
        self.check_data::<T>(start, source.len())?;
        let to = self.data_address::<T>(start);
        for (index, &element) in source.iter().enumerate() {
            // SAFETY: the element is data of this width.
            unsafe { element.store(to + index * size_of::<T>()) };
        }
        Ok(())
    }

    /// All elements of an array of data.
    pub fn to_vec<T: Data + Default>(self) -> Result<Vec<T>, AccessError> {
        let length = self.length().unwrap_or(0) as usize;
        self.check_data::<T>(0, length)?;
        let mut elements = vec![T::default(); length];
        self.copy_to(0, &mut elements)?;
        Ok(elements)
    }

    #[inline(always)]
    fn data_address<T: Data>(self, index: usize) -> usize {
        self.address() + HEADER_BYTES + index * size_of::<T>()
    }

    /// `count` elements from `start` on are elements, as wide as `T`, of this array of data.
    #[inline(always)]
    fn check_data<T: Data>(self, start: usize, count: usize) -> Result<(), AccessError> {
        let word = self.header();
        let layout = self.session().shapes().layout(word.shape());
        if layout.form == Form::Data
            && 1 << layout.shift == T::BYTES
            && in_range(start, count, word.aux())
        {
            return Ok(());
        }
        Err(self.bad_elements(start, count, Kind::Data(T::BYTES)))
    }

    #[cold]
    #[inline(never)]
    fn bad_elements(self, start: usize, count: usize, wanted: Kind) -> AccessError {
        let info = self.info();
        let length = self.length().unwrap_or(0) as usize;
        if info.element == Some(wanted) {
            return Refusal::OutOfRange {
                shape: info.name.as_str().into(),
                index: start.saturating_add(count.saturating_sub(1)),
                length,
            }
            .into();
        }
        wrong_kind(info, "an element", info.element, &describe(Some(wanted)))
    }
}

#[inline(always)]
fn in_range(start: usize, count: usize, length: u32) -> bool {
    start <= length as usize && count <= length as usize - start
}
